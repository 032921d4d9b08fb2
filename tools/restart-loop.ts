/**
 * `node build/tools/restart-loop.js [CLIENTS] [RESTARTS]`: EventSource clients over restarts of the program on one port.
 * Each client must reconnect by itself. Loopback only, bounded by the number of restarts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signUp } from '../kit/agent.ts';
import { pickPort } from '../kit/free-port.ts';
import { launch, NO_LIMITS } from '../kit/launch.ts';
import { PlainEventSource } from '../kit/plain-event-source.ts';

export interface RestartLoopOptions {
  readonly clients: number;
  /** Every second one is a kill -9. */
  readonly restarts: number;
  readonly dataPath: string;
}

export interface RestartLoopReport {
  restarts: number;
  /** Clients with an open stream at the end. */
  open: number;
  /** Streams that began, over all clients. */
  opened: number;
  /** Tries that met a closed port. */
  refused: number;
  /** Longest time from the program's end until the last client was back, milliseconds. */
  backMs: number;
  /** Each line is a client that is gone for good. Empty when all is well. */
  faults: string[];
}

const SETTINGS = {
  ...NO_LIMITS,
  ConnectionsPerNetworkPercent: 0,
  SseStreamsPerSession: 100,
};
/** Below what one session may connect in ten seconds: all of them come back at about the same time. */
const CLIENTS_PER_ACCOUNT = 25;
/** Waiting longer than this for all clients is a failure. Milliseconds. */
const TIMEOUT_MS = 60_000;

export async function runRestartLoop({
  clients,
  restarts,
  dataPath,
}: RestartLoopOptions): Promise<RestartLoopReport> {
  const max = 4 * clients + 1_000;
  const bounds = { SseStreamsMax: max, SseStreamsPerAddress: max, ConnectionsMax: max };
  const configuration = { Settings: { ...SETTINGS, ...bounds } };
  const port = await pickPort();
  const start = () => launch({ dataPath, configuration, port });
  let gateway = await start();
  const url = `${gateway.url}/auth/v1/events`;
  const streams = new EventStreams();
  for (let at = 0; at < clients; at += 1) {
    if (at % CLIENTS_PER_ACCOUNT === 0) streams.cookie = (await signUp(gateway.url)).cookie;
    streams.add(url);
  }
  await streams.all();
  const report: RestartLoopReport = { restarts: 0, open: 0, opened: 0, refused: 0, backMs: 0, faults: [] };
  for (; report.restarts < restarts && streams.faults.length === 0; report.restarts += 1) {
    const endedMs = performance.now();
    if (report.restarts % 2 === 0) await gateway.stop();
    else await gateway.kill();
    gateway = await start();
    await streams.all();
    report.backMs = Math.max(report.backMs, Math.round(performance.now() - endedMs));
  }
  for (const source of streams.sources) {
    report.opened += source.opened;
    report.refused += source.refused;
    if (source.state === 'open') report.open += 1;
  }
  report.faults = streams.faults;
  streams.close();
  await gateway.stop();
  return report;
}

class EventStreams {
  readonly sources: PlainEventSource[] = [];
  readonly faults: string[] = [];
  cookie = '';
  #changed: () => void = () => undefined;

  add(url: string): void {
    const onState = (source: PlainEventSource) => {
      if (source.state === 'failed') this.faults.push(`a client was answered ${source.failure}`);
      this.#changed();
    };
    this.sources.push(new PlainEventSource({ url: () => url, cookie: this.cookie, onState }));
  }

  /** Resolves when every stream that was ended is open again, or one of them never will be. */
  async all(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.faults.push('not all clients came back');
        resolve();
      }, TIMEOUT_MS);
      this.#changed = () => {
        const isOver = this.faults.length > 0 || this.sources.every(({ state }) => state === 'open');
        if (!isOver) return;
        clearTimeout(timer);
        resolve();
      };
      this.#changed();
    });
  }

  close(): void {
    for (const source of this.sources) source.close();
  }
}

if (process.argv[1]?.endsWith('restart-loop.js')) {
  const [clients = 2_000, restarts = 5] = process.argv.slice(2).map(Number);
  const dataPath = mkdtempSync(join(tmpdir(), 'gatehouse-restarts-'));
  const report = await runRestartLoop({ clients, restarts, dataPath: join(dataPath, 'data') });
  rmSync(dataPath, { recursive: true, force: true });
  console.log(JSON.stringify(report));
  process.exitCode = report.faults.length > 0 || report.open < clients ? 1 : 0;
}
