/** Setting of a break: a gateway or a cluster, helpers that end with it, and rules that do not wait for hours. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type RequestListener } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expectOk, request } from '../../kit/agent.ts';
import { type Nodes, type NodesOptions, startNodes } from '../../kit/cluster/nodes.ts';
import { type Postgres, startPostgres } from '../../kit/cluster/postgres.ts';
import { listenOnLoopback } from '../../kit/http.ts';
import { type LaunchOptions, launch, NO_FILE_LIMITS, type RunningGateway } from '../../kit/launch.ts';
import { startPrometheus } from '../../kit/prometheus.ts';
import { alertsText } from '../dashboards/print-dashboards.ts';
import { RULES, type Rule } from '../dashboards/rules.ts';

export const MODULE_KEY = 'alerts-module-key-0123456789';
export const PLANTED = fileURLToPath(new URL('./planted.cjs', import.meta.url));
/** Nothing listens there. */
export const NOWHERE = 'http://127.0.0.1:9';
const DEADLINE_MS = 120_000;
const PAUSE_MS = 200;

/** Times and counts that would take hours: each rule compares with these instead. */
const SMALLER: Readonly<Record<string, number>> = {
  GatehouseWebhooksLate: 2,
  GatehouseJournalBehind: 20,
  GatehouseHeadBloated: 50,
};
const WAITING_SECONDS = 2;

/** Fires after a second, and looks back a minute where it looks at hours and days. */
function impatient(rule: Rule): Rule {
  const sooner = (expression: string) =>
    expression
      .replaceAll('> bool 300', `> bool ${WAITING_SECONDS}`)
      .replaceAll(/\[(?:3d|6h|30m|1h):\w+\]/g, '[1m:1s]')
      .replaceAll(/\[(?:3d|6h|30m|1h)\]/g, '[1m]');
  return {
    ...rule,
    value: sooner(rule.value),
    ...(rule.also !== undefined && { also: sooner(rule.also) }),
    above: SMALLER[rule.alert] ?? rule.above,
    for: '1s',
  };
}

export interface Break {
  readonly title: string;
  readonly alerts: readonly string[];
  readonly set: (stage: Stage) => Promise<Scene>;
}

export interface Scene {
  /** Addresses of internal listeners. */
  readonly targets: readonly string[];
  /** Breaks it; called again until the alerts fire. Left out: it is broken from its start. */
  readonly act?: () => Promise<unknown>;
}

export class Stage {
  readonly #ends: (() => unknown)[] = [];

  /** Ends with the stage, the newest first. */
  defer(end: () => unknown): void {
    this.#ends.push(end);
  }

  async gateway(options: LaunchOptions = {}): Promise<RunningGateway> {
    const { configuration, ...others } = options;
    const gateway = await launch({
      configuration: { Settings: NO_FILE_LIMITS, ...configuration },
      ...others,
    });
    this.defer(async () => {
      gateway.process.kill('SIGCONT');
      await gateway.stop();
    });
    return gateway;
  }

  async server(listener: RequestListener): Promise<string> {
    const server = createServer(listener);
    const { url } = await listenOnLoopback(server);
    this.defer(() => {
      server.close();
      server.closeAllConnections();
    });
    return url;
  }

  async cluster(options: Omit<NodesOptions, 'postgres'>): Promise<Nodes & { readonly postgres: Postgres }> {
    const postgres = await startPostgres();
    if (typeof postgres === 'string') throw new Error(postgres);
    this.defer(() => postgres.stop());
    const configuration = { Settings: NO_FILE_LIMITS, ...options.configuration };
    const nodes = await startNodes({ sandbox: false, ...options, configuration, postgres });
    this.defer(() => nodes.stop());
    return { ...nodes, postgres };
  }

  /** A connection that sends `text` and nothing else. */
  socket(url: string, text: string): void {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => socket.destroy()).write(text);
    this.defer(() => socket.destroy());
  }

  /** Each write of the process to its disk takes so much longer, from now on. */
  slowDisk({ pid }: ChildProcess, delayMs: number): void {
    const calls = 'fdatasync,fsync,msync';
    const inject = `inject=${calls}:delay_enter=${delayMs * 1_000}`;
    const flags = ['-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', inject, '-p', String(pid)];
    const tracer = spawn('strace', flags, { stdio: 'ignore' });
    this.defer(() => tracer.kill('SIGKILL'));
  }

  async end(): Promise<void> {
    for (const end of this.#ends.splice(0).reverse()) await end();
  }
}

let ticks = 0;

export const get = (url: string, headers: Record<string, string> = {}) =>
  request(url, { headers }).catch(() => undefined);

export async function push(gateway: RunningGateway, crmId: string, events: number, text: string) {
  const all = Array.from({ length: events }, () => {
    ticks += 1;
    return { module: 'core', tick: String(ticks), type: 'Alert', user: { crmId }, data: { text } };
  });
  const headers = { 'X-Module-Key': MODULE_KEY };
  const url = `${gateway.internal}/internal/v1/events`;
  expectOk('events', await request(url, { headers, body: { events: all } }));
}

/** Alerts that did not fire in time; before the break none of them may fire. */
export async function alertsMissing({ alerts, set }: Break): Promise<string[]> {
  const stage = new Stage();
  try {
    const { targets, act } = await set(stage);
    const prometheus = await startPrometheus(targets, alertsText(RULES.map(impatient)));
    stage.defer(() => prometheus.stop());
    while (
      (await prometheus.query('count_over_time(up[1m])')).filter((count) => count > 2).length < targets.length
    )
      await wait(PAUSE_MS);
    const early = await prometheus.firing();
    const before = act === undefined ? [] : alerts.filter((alert) => early.has(alert));
    if (before.length > 0) throw new Error(`fires before anything is broken: ${before.join(', ')}`);
    const seen = new Set<string>();
    for (const endMs = Date.now() + DEADLINE_MS; Date.now() < endMs && seen.size < alerts.length; ) {
      await act?.();
      await wait(PAUSE_MS);
      const firing = await prometheus.firing();
      for (const alert of alerts) if (firing.has(alert)) seen.add(alert);
    }
    return alerts.filter((alert) => !seen.has(alert));
  } finally {
    await stage.end();
  }
}
