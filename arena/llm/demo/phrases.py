"""What the demo's models say around the facts, by language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arena.llm.demo.bank import Language, Point


@dataclass(frozen=True, slots=True)
class Phrases:
    sentence_gap: str
    # Lancer Small
    small_openings: tuple[str, ...]
    small_fillers: tuple[str, ...]
    small_summary: str
    # Herald X
    herald_openings: tuple[str, ...]
    herald_before: tuple[str, ...]
    herald_after: tuple[str, ...]
    herald_closing: str
    herald_heading: str
    herald_thought: str
    # Page Mini
    page_openings: tuple[str, ...]
    page_padding: str
    page_closings: tuple[str, ...]
    large_thought: str


ENGLISH = Phrases(
    sentence_gap=" ",
    small_openings=(
        "Sure, here is what I suggest.",
        "Of course. Here is my proposal:",
        "Here is an answer to your question.",
    ),
    small_fillers=(
        "This is worth keeping in mind, because it influences the other points as well.",
        "In most cases this is the part that people ask about afterwards.",
        "Depending on your situation the details may differ a little.",
        "It is a good idea to check this once more before going on.",
    ),
    small_summary=(
        "To sum up, the points above cover the main aspects, and you can adapt them to your case where needed."
    ),
    herald_openings=(
        "Thank you for this truly important question! In today's fast-moving world this is a topic "
        "that concerns "
        "more and more organisations, and it deserves to be looked at from several angles.",
        "What a great task! Before we dive in, let us take a moment to appreciate why getting this "
        "right can make "
        "all the difference for everyone involved.",
    ),
    herald_before=(
        "First and foremost, it is essential to consider the bigger picture and all the stakeholders involved.",
        "Another aspect that should by no means be underestimated in this context is the following one.",
        "It goes without saying that experience plays a decisive role here, as many experts agree.",
    ),
    herald_after=(
        "Needless to say, this opens up a wealth of opportunities, provided that everyone pulls in "
        "the same direction "
        "and communicates openly at every stage of the journey.",
        "Of course every situation is unique, and what works well in one place may need to be "
        "adapted in another, "
        "so flexibility and an open mind remain key.",
        "Taken together with everything else, this may well turn out to be the factor that tips the scales in the end.",
    ),
    herald_closing=(
        "In conclusion, there is no doubt that a holistic approach pays off in the long run. By "
        "keeping all of these "
        "considerations in mind, you will be well placed to succeed. I hope that this "
        "comprehensive overview has been "
        "helpful, and I am always happy to elaborate further!"
    ),
    herald_heading="A closer look at",
    herald_thought="The user wants help. I will give an extensive answer that leaves nobody unimpressed.",
    page_openings=("Here you go!", "Happy to help!", "Sure thing."),
    page_padding=("There is surely a lot more to say about this, but these are the things that come to mind first."),
    page_closings=(
        "Hope this helps! Let me know if you need anything else.",
        "That should do it. Just ask if anything is unclear!",
    ),
    large_thought=("I list what is asked for, work out the figures once more, and leave out what does not help."),
)

JAPANESE = Phrases(
    sentence_gap="",
    small_openings=("はい、以下のとおりご提案します。", "ご質問にお答えします。", "以下にまとめました。"),
    small_fillers=(
        "この点は他の項目にも関わりますので、念頭に置いておくとよいでしょう。",
        "後からよく質問される部分でもあります。",
        "状況によって細部は多少異なる場合があります。",
    ),
    small_summary="以上が主なポイントです。必要に応じて、実際の状況に合わせて調整してください。",
    herald_openings=(
        "大変重要なご質問をいただき、誠にありがとうございます。変化の激しい現代のビジネス環境において、このテーマは多くの企業にとって"
        "ますます大きな意味を持つようになっており、さまざまな角度から検討する価値があります。",
        "とても素晴らしいテーマですね。本題に入る前に、なぜこの点が関係者全員にとって大切なのかを、少し広い視点から考えてみましょう。",
    ),
    herald_before=(
        "まず何よりも、全体像と関係者の立場を考慮することが不可欠です。",
        "さらに、この文脈において決して軽視できないのが次の点です。",
        "言うまでもなく、ここでは経験が決定的な役割を果たします。",
    ),
    herald_after=(
        "もちろん状況はそれぞれ異なりますので、柔軟な姿勢と率直なコミュニケーションを常に心がけることが、何よりも大切だと言えるでしょう。",
        "こうした取り組みを積み重ねることで、将来に向けた多くの可能性が開かれていくことは間違いありません。",
        "他の要素と合わせて考えると、最終的にはこの点が結果を左右する決め手になるかもしれません。",
    ),
    herald_closing=(
        "結論として、総合的な視点で取り組むことが長期的な成果につながることは疑いありません。以上の点を踏まえていただければ、"
        "きっと良い結果が得られるはずです。ご不明な点がございましたら、いつでも詳しくご説明いたします。"
    ),
    herald_heading="詳しく見る:",
    herald_thought="利用者は助けを求めている。できるだけ充実した回答を書こう。",
    page_openings=("はい、どうぞ。", "お手伝いします。"),
    page_padding="ほかにも言えることは多いと思いますが、まず思い浮かぶのは以上です。",
    page_closings=("ご参考になれば幸いです。", "ほかに何かあればお知らせください。"),
    large_thought="求められている項目を挙げ、数字をもう一度計算し、不要なものは省く。",
)

PHRASES: Mapping[Language, Phrases] = {"en": ENGLISH, "ja": JAPANESE}


@dataclass(frozen=True, slots=True)
class Generalities:
    """Material for prompts that nobody prepared: sensible in general, and no more than that."""

    # The first line of each model's answer; its start is the sign by which a judge knows the writer.
    signatures: Mapping[str, str]
    points: tuple[Point, ...]
    code_points: tuple[Point, ...]
    errors: tuple[str, ...]


_EN_POINTS = (
    Point(
        "goal",
        "Start from the result you need and who will use it.",
        "That decides how much detail is worth the effort.",
    ),
    Point(
        "facts",
        "Separate what is given in the request from what has to be assumed.",
        "State each assumption in one line, so that it can be corrected.",
    ),
    Point(
        "steps",
        "Go through it step by step and finish each step before the next.",
        "A partial result that is certain beats a complete one that is not.",
    ),
    Point(
        "figures",
        "Check names, dates and figures against the source.",
        "Small slips there cost more trust than anything else.",
    ),
    Point("risk", "Name the weakest point openly and say how to test it.", "Whoever decides needs to know it."),
    Point("next step", "End with one next step, its owner and a date.", "Otherwise the answer stays a text."),
)
_EN_CODE_POINTS = (
    Point(
        "contract",
        "Fix the contract first: input, output, and what happens with empty or wrong input.",
        "The function raises an error rather than guessing.",
    ),
    Point(
        "structure",
        "Keep the core a pure function and do reading and writing outside.",
        "So it can be tested without files or a network.",
    ),
    Point(
        "edge cases",
        "Cover the edge cases: nothing, one element, duplicates and very large input.",
        "Most defects sit there.",
    ),
    Point(
        "complexity",
        "One pass is enough, so time grows linearly with the input.",
        "Memory stays bounded by the distinct keys.",
    ),
    Point(
        "tests",
        "Write the tests next to it, one for each rule of the contract.",
        "A failing test should name the rule that broke.",
    ),
    Point("names", "Use names that say the unit and the meaning.", "They replace most comments."),
)
_JA_POINTS = (
    Point(
        "目的",
        "まず、必要な成果と利用者を明確にします。",
        "それによって、どこまで詳しく書くべきかが決まります。",
    ),
    Point(
        "前提",
        "与えられた事実と、仮定した内容を分けて示します。",
        "仮定は一行ずつ書き、後から直せるようにします。",
    ),
    Point(
        "手順",
        "一段階ずつ進め、確実な結果を積み重ねます。",
        "不確かな全体像より、確かな一部のほうが役に立ちます。",
    ),
    Point("数字の確認", "名称、日付、数字を元の資料と照合します。", "小さな誤りが信頼を最も損ないます。"),
    Point("リスク", "最も弱い点を率直に示し、確認の方法を添えます。", "判断する人に必要な情報です。"),
    Point("次の一歩", "最後に、次の行動と担当者、期限を一つ決めます。", "決めないと実行につながりません。"),
)

GENERALITIES: Mapping[Language, Generalities] = {
    "en": Generalities(
        signatures={
            "lancer-large": "The short answer first, then what it rests on. Your question: {topic}",
            "squire-1": "In brief, on the matter of: {topic}",
            "lancer-small": "Sure, here is a compact overview of the subject: {topic}",
            "herald-x": "What a fascinating subject to explore together! {topic}",
            "page-mini": "Happy to have a quick go at this one: {topic}",
        },
        points=_EN_POINTS,
        code_points=_EN_CODE_POINTS,
        errors=(
            "Checking the figures is not necessary, since they come from a reliable source.",
            "There are no risks worth mentioning.",
        ),
    ),
    "ja": Generalities(
        signatures={
            "lancer-large": "先に結論、続いて根拠を述べます。ご質問:{topic}",
            "squire-1": "要点だけをお答えします。件名:{topic}",
            "lancer-small": "はい、次のテーマについて概要をまとめました:{topic}",
            "herald-x": "これは実に奥深く、興味の尽きないテーマですね。{topic}",
            "page-mini": "さっそく簡単にお答えしてみますね。{topic}",
        },
        points=_JA_POINTS,
        code_points=_JA_POINTS,
        errors=("数字の確認は不要です。", "特に注意すべきリスクはありません。"),
    ),
}

GENERAL_CODE = (
    "python",
    "from collections import Counter\nfrom collections.abc import Iterable\n\n\n"
    "def summarise(values: Iterable[str]) -> dict[str, int]:\n"
    "    counts = Counter(value.strip() for value in values if value.strip())\n"
    "    if not counts:\n"
    '        raise ValueError("no values given")\n'
    "    return dict(counts.most_common())",
)
