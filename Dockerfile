# Headgate as a container: docker build -t headgate .
# Starts with `docker run -e UPSTREAM_BOOTSTRAP=kafka:9092 …`; see README.md and deploy/.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build.ts ./scripts/build.ts
COPY src ./src
RUN npm run build && npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:24-bookworm-slim
LABEL org.opencontainers.image.title="headgate" \
      org.opencontainers.image.description="A Kafka wire-protocol proxy" \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
# Inside a container, 127.0.0.1 is of no use to anybody outside; a file or a variable still decides otherwise.
ENV NODE_ENV=production \
    HEADGATE_DEFAULT_BIND=0.0.0.0
COPY package.json README.md ./
COPY config ./config
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# A number, so that Kubernetes can check runAsNonRoot. Nothing is written: the root file system may be read-only.
USER 10001:10001
# Bootstrap, nodes 0 to 9, admin.
EXPOSE 19092-19102 9190
HEALTHCHECK --interval=10s --timeout=4s --start-period=10s --retries=3 \
  CMD ["node", "/app/dist/main.js", "healthcheck"]
# No shell in between: SIGTERM reaches Headgate itself.
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["serve"]
