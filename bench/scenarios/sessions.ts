/**
 * 1,000 and 100,000 accounts, each with a session: how long a gateway takes to listen over their journal, what memory a
 * live session takes, and what checking one costs among so many. A gateway and a journal for each size.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkCookies } from '../load/requests.ts';
import type { Subject } from '../measure/measure.ts';
import { readMetric } from '../measure/metrics.ts';
import { costOf } from '../measure/process-cost.ts';
import { median } from '../measure/statistics.ts';
import type { Figure } from '../report/targets.ts';
import type { Bench, Scenario } from '../scenario.ts';
import { type GatewayUnderLoad, gatewayUnderLoad } from '../subjects/gateway.ts';
import { seedJournal } from '../subjects/seeded-journal.ts';
import { RawConnection } from './transfers/raw-connection.ts';

const SIZES = [1_000, 100_000] as const;
/** Starts of each size, one after the other; the last one stays. One alone is what the machine did in that second. */
const STARTS = 3;
/** Sessions that one round asks about, spread over all. */
const SAMPLE = 6_000;
/** A prime that divides no size: steps of it meet each session once before any twice. */
const STRIDE = 7_919;
/** Connections on which every session is used once, so that it is live. */
const STREAMS = 64;
/** All rounds lie within the minute after which an idle account leaves memory, and making them live takes part of it. */
const WITHIN_MS = 30_000;
const LABEL = 'session check';
const START = 'start to listening over the journal of 100,000 accounts';
const RSS = 'RSS of a live session';
const PASSIVATED = 'sessions passivated while measuring';
const TOO_SLOW =
  'Some sessions left memory before they were asked about: this machine took over a minute. Their checks read the journal, and the ratio is no verdict.';

interface LoadedGateway extends GatewayUnderLoad {
  readonly size: number;
  readonly cookies: readonly string[];
  readonly startMs: number;
}

export const sessions: Scenario = {
  name: 'sessions',
  summary: '1,000 and 100,000 live sessions of as many accounts: start, memory of a session, cost of a check',
  noTarget: 'it writes a journal of 100,000 accounts first',
  targets: [
    { figure: START, atMost: 1_000, row: 'start to listening with an existing journal of 100,000 users' },
  ],
  async run(bench) {
    const gateways: LoadedGateway[] = [];
    for (const size of SIZES) gateways.push(await startGateway(bench, size));
    // The largest first: it takes longest, and the minute begins with it.
    const firstUses: Figure[] = [];
    for (const gateway of [...gateways].reverse()) firstUses.unshift(await wake(bench, gateway));
    const subjects = gateways.map((gateway) => subjectOf(bench, gateway));
    const comparison = await bench.compare(subjects, WITHIN_MS);
    const passivated = await Promise.all(gateways.map(passivatedBy));
    const memory = gateways.map(({ pids }) => memoryOf(pids[0] ?? 0));
    return {
      comparison,
      notes: [
        'Accounts are written into the journal by the gateway’s own actors; each has a browser session, used once before the rounds.',
        ...(Math.max(...passivated) > 0 ? [TOO_SLOW] : []),
        `A start is the median of ${STARTS}, each over the journal that the one before has left.`,
        'Memory of a session is the slope from 1,000 to 100,000 live ones, after all rounds, garbage included.',
      ],
      figures: [
        { name: START, unit: 'ms', value: gateways.at(-1)?.startMs ?? Number.NaN },
        ...firstUses,
        slope(
          RSS,
          memory.map(({ rss }) => rss),
        ),
        slope(
          'private memory of a live session',
          memory.map(({ anon }) => anon),
        ),
        { name: PASSIVATED, unit: '', value: Math.max(...passivated) },
      ],
    };
  },
};

function nameOf(size: number): string {
  return `${LABEL}, ${size.toLocaleString('en')} sessions`;
}

async function startGateway(bench: Bench, size: number): Promise<LoadedGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sessions-'));
  bench.onTeardown(async () => rmSync(folder, { recursive: true, force: true }));
  const dataPath = join(folder, 'data');
  bench.announce(`a journal of ${size.toLocaleString('en')} accounts`);
  const sessions = await seedJournal(dataPath, size);
  const starts: { gateway: GatewayUnderLoad; ms: number }[] = [];
  while (starts.length < STARTS) {
    await starts.at(-1)?.gateway.stop?.();
    const startedMs = performance.now();
    const gateway = await gatewayUnderLoad(bench, undefined, { dataPath });
    starts.push({ gateway, ms: performance.now() - startedMs });
  }
  const gateway = starts.at(-1)?.gateway;
  if (gateway === undefined) throw new Error('no gateway');
  const startMs = median(starts.map(({ ms }) => ms));
  return { ...gateway, size, startMs, cookies: sessions.map(({ cookie }) => cookie) };
}

/** Uses every session once: its account is replayed from the journal, and the use is written down. */
async function wake(bench: Bench, gateway: LoadedGateway): Promise<Figure> {
  const { url, pids, cookies, size } = gateway;
  bench.announce(`${size.toLocaleString('en')} sessions come to life`);
  const cpuMs = () => costOf(pids[0] ?? 0)?.cpuMs ?? Number.NaN;
  const before = cpuMs();
  let next = 0;
  const stream = async () => {
    const connection = await RawConnection.open(url);
    for (let cookie = cookies[next++]; cookie !== undefined; cookie = cookies[next++]) {
      const { status, text } = await connection.ask('GET', '/auth/v1/info', { Cookie: cookie });
      if (status !== 200 || text.includes('"session":null'))
        throw new Error(`a session is gone: ${status} ${text}`);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: STREAMS }, stream));
  const name = `first use of each of ${size.toLocaleString('en')} sessions, processor time`;
  return { name, unit: 'us', value: ((cpuMs() - before) * 1_000) / size };
}

function subjectOf(bench: Bench, { url, pids, cookies, size }: LoadedGateway): Subject {
  let round = 0;
  return bench.subject(nameOf(size), pids, () => {
    round += 1;
    const offset = round * SAMPLE;
    const some = Array.from(
      { length: Math.min(SAMPLE, size) },
      (_, index) => cookies[((offset + index) * STRIDE) % size] ?? '',
    );
    return { url, ...checkCookies(url, some) };
  });
}

async function passivatedBy({ internal }: LoadedGateway): Promise<number> {
  if (internal === undefined) return Number.NaN;
  return await readMetric(internal, 'gatehouse_actor_passivations_total', {});
}

/** Resident memory in bytes: all, and that of no file (a journal's pages can be let go of at any time). */
function memoryOf(pid: number): { readonly rss: number; readonly anon: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]);
  return { rss: kib('VmRSS') * 1_024, anon: kib('RssAnon') * 1_024 };
}

function slope(name: string, bytes: readonly number[]): Figure {
  const [few, many] = SIZES;
  const [ofFew = Number.NaN, ofMany = Number.NaN] = bytes;
  return { name, unit: 'KiB', value: (ofMany - ofFew) / (many - few) / 1_024 };
}
