#!/bin/sh
# One image, three roles: web, worker, beat. Anything else is run as it is, manage.py commands for example.
set -eu

case "${1:-web}" in
  web)
    # Runs the system checks first: what is missing stops the start, with a sentence that says what to do.
    python manage.py migrate --noinput
    # No access log: the addresses of login links are secrets for as long as they work.
    exec gunicorn config.wsgi:application \
      --bind "${BIND:-0.0.0.0:8000}" \
      --worker-class gthread \
      --workers "${WEB_PROCESSES:-2}" \
      --threads "${WEB_THREADS:-8}" \
      --timeout 60 \
      --graceful-timeout 30 \
      --worker-tmp-dir /dev/shm \
      --no-control-socket
    ;;
  worker)
    # Threads wait for models; processes would cost more memory and time for each call.
    exec celery -A config worker \
      -P threads \
      -c "${WORKER_THREADS:-32}" \
      --without-gossip \
      --without-mingle \
      --loglevel "${LOG_LEVEL:-INFO}"
    ;;
  beat)
    # Exactly one of these runs. Its schedule file may be lost; everything it starts is safe to start again.
    exec celery -A config beat \
      --schedule "${BEAT_SCHEDULE:-/tmp/beat-schedule}" \
      --pidfile= \
      --loglevel "${LOG_LEVEL:-INFO}"
    ;;
  *)
    exec "$@"
    ;;
esac
