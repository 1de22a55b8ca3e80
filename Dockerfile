# One image for all parts: `windrow serve`, `windrow worker`, `windrow db migrate`.
#
#   docker build -t windrow .
#   docker run -p 3002:3002 -e WINDROW_API_KEYS=change-me -v windrow:/data windrow
#
# It runs as a user without rights, also with `--read-only --tmpfs /tmp`.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir --prefix=/install -c constraints.txt ".[postgres,server,knowledge,audio,browser,s3]"

FROM python:3.11-slim
# ffmpeg for recordings, chromium for pages that need a browser; leave out what you do not use, with
# the extra above that uses it: audio, browser.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ffmpeg chromium \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /install /usr/local
RUN useradd --create-home --uid 1000 windrow && install -d -o windrow /data
USER windrow
WORKDIR /data
ENV WINDROW_DATABASE_URL=sqlite:////data/windrow.db \
    WINDROW_DATA_DIR=/data \
    HOME=/data \
    PYTHONUNBUFFERED=1
EXPOSE 3002
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:3002/ready', timeout=2)"]
# Workers have no port: give them `--no-healthcheck`. Whether jobs run is said by /health of the server.
STOPSIGNAL SIGTERM
CMD ["windrow", "serve", "--host", "0.0.0.0"]
