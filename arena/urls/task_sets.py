from __future__ import annotations

from django.urls import URLPattern, path

from arena.views import task_sets, uploads

urlpatterns: list[URLPattern] = [
    path("t/<str:team>/task-sets/", task_sets.task_set_list, name="task-set-list"),
    path("t/<str:team>/task-sets/upload/", uploads.task_set_upload, name="task-set-upload"),
    path("t/<str:team>/task-sets/templates/<str:starter>/", uploads.task_set_starter, name="task-set-starter"),
    path("t/<str:team>/task-sets/drafts/<str:draft>/", uploads.draft_detail, name="draft-detail"),
    path("t/<str:team>/task-sets/drafts/<str:draft>/save/", uploads.draft_save, name="draft-save"),
    path("t/<str:team>/task-sets/drafts/<str:draft>/discard/", uploads.draft_discard, name="draft-discard"),
    path("t/<str:team>/task-sets/drafts/<str:draft>/problems.txt", uploads.draft_problems, name="draft-problems"),
    path("t/<str:team>/task-sets/<str:task_set>/", task_sets.task_set_detail, name="task-set-detail"),
    path("t/<str:team>/task-sets/<str:task_set>/delete/", task_sets.task_set_delete, name="task-set-delete"),
    path("t/<str:team>/task-sets/<str:task_set>/samples.jsonl", task_sets.task_set_jsonl, name="task-set-jsonl"),
    path("t/<str:team>/task-sets/<str:task_set>/task-set.zip", task_sets.task_set_zip, name="task-set-zip"),
    path("t/<str:team>/task-sets/<str:task_set>/samples/<str:sample>/", task_sets.sample_detail, name="sample-detail"),
    path("t/<str:team>/attachments/<str:attachment>/", task_sets.attachment_file, name="attachment-file"),
    path("t/<str:team>/attachments/<str:attachment>/text/", task_sets.attachment_text, name="attachment-text"),
]
