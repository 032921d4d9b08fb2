# docker build -t gatehouse . && docker run -p 8080:8080 -v gatehouse:/var/lib/gatehouse --read-only --tmpfs /tmp gatehouse
ARG NODE_VERSION=24
FROM node:${NODE_VERSION}-trixie-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
COPY packages/no-scarf packages/no-scarf
RUN npm ci --ignore-scripts
COPY . .
RUN npm pack --pack-destination /package

FROM node:${NODE_VERSION}-trixie-slim
COPY --from=build /package/*.tgz /tmp/
RUN npm install --global --omit=dev --ignore-scripts /tmp/gatehouse-*.tgz \
  && rm -rf /tmp/*.tgz /root/.npm \
  && useradd --system --uid 10001 --user-group --no-create-home gatehouse \
  && install -d -o gatehouse -g gatehouse -m 0700 /var/lib/gatehouse /var/lib/gatehouse/files
USER 10001:10001
ENV NODE_ENV=production \
  GATEHOUSE_LISTEN_HOST=0.0.0.0 \
  GATEHOUSE_DATA_PATH=/var/lib/gatehouse
WORKDIR /var/lib/gatehouse
VOLUME /var/lib/gatehouse
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["gatehouse", "status"]
# The drain takes up to 13 s, of a node of a cluster up to 20 s: stop with a time limit above it.
STOPSIGNAL SIGTERM
ENTRYPOINT ["gatehouse"]
CMD ["serve"]
