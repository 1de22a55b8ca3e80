# One image for all parts: `windrow serve`, `windrow worker`, `windrow db migrate`.
#
#   docker build -t windrow .
#   docker run -p 3002:3002 -e WINDROW_API_KEYS=change-me -v windrow:/data windrow
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md ./
COPY src ./src
RUN pip install --no-cache-dir --prefix=/install -c constraints.txt .

FROM python:3.11-slim
# ffmpeg for recordings, chromium for pages that need a browser; leave out what you do not use.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ffmpeg chromium \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /install /usr/local
RUN useradd --create-home --uid 1000 windrow && install -d -o windrow /data
USER windrow
WORKDIR /data
ENV WINDROW_DATABASE_URL=sqlite:////data/windrow.db \
    WINDROW_DATA_DIR=/data \
    PYTHONUNBUFFERED=1
EXPOSE 3002
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:3002/health', timeout=2)"]
# Workers have no port: give them `--no-healthcheck`, or look at /health of the server.
STOPSIGNAL SIGTERM
CMD ["windrow", "serve", "--host", "0.0.0.0"]
