from collections import Counter

from django.db import migrations
from django.db.models import Count

SIDES = {
    "first": ("wins", "losses"),
    "second": ("losses", "wins"),
    "tie": ("ties", "ties"),
    "inconclusive": ("inconclusive", "inconclusive"),
}


def count(apps, schema_editor):
    Jury, Decision, Match, Tally = (apps.get_model("arena", name) for name in ("Jury", "Decision", "Match", "Tally"))
    counts = {}
    columns = ("jury", "match__first", "match__second", "outcome")
    decided = Decision.objects.filter(superseded_at=None).order_by().values_list(*columns)
    for jury, first, second, outcome, times in decided.annotate(times=Count("id")):
        for candidate, name in zip((first, second), SIDES[outcome]):
            counts.setdefault((jury, candidate), Counter())[name] += times
    juries = dict(Jury.objects.filter(primary=True).values_list("tournament", "pk"))
    for side in ("first", "second"):
        rows = Match.objects.filter(status="void").order_by().values_list(
            "tournament", side, "forced_tie", f"{side}_trial__status"
        )
        for tournament, candidate, forced, status, times in rows.annotate(times=Count("id")):
            if tournament in juries:
                kept = counts.setdefault((juries[tournament], candidate), Counter())
                kept["voids"] += times
                kept["forced_ties"] += times if forced else 0
                kept["skips"] += times if status != "succeeded" else 0
    Tally.objects.bulk_create(
        [Tally(jury_id=jury, candidate_id=candidate, **found) for (jury, candidate), found in counts.items()]
    )


class Migration(migrations.Migration):

    dependencies = [
        ('arena', '0004_tallies'),
    ]

    operations = [
        migrations.RunPython(count, migrations.RunPython.noop),
    ]
