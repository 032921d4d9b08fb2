/**
 * The kill -9 loop over the real program and its real journal: clients write through HTTP while the process is
 * killed, unacknowledged writes are sent again with the same Idempotency-Key after the restart. What was
 * acknowledged must be there, nothing may have been applied twice. Loopback only, bounded by the number of kills.
 */
import {
  type Answer,
  challenge,
  expectOk,
  mcpLogin,
  newKey,
  type Person,
  request,
  rpc,
  signUpAgent,
} from './agent.ts';
import { type KillOptions, type KillReport, killLoop, untilCut } from './kills.ts';
import { HIGH_LIMITS, type RunningGateway } from './launch.ts';

export interface KillLoopReport extends KillReport {
  acknowledged: number;
  /** Writes whose answer the kill swallowed and that were found applied when sent again. */
  recovered: number;
  /** Writes that were sent again and had not been applied before. */
  repeated: number;
  sessions: number;
}

interface Write {
  readonly idempotencyKey: string;
  readonly publicKey: string;
  readonly body: { challengeId: number; code: string; publicKey: string };
}

interface Writer {
  readonly person: Person;
  readonly acknowledged: Map<string, string>;
  pending: Write | undefined;
  bearer: string | undefined;
}

/** Shortest and longest time of writing before a kill. */
const WRITING_MS = [30, 250] as const;
/** Keys of one account: then another one continues, since an account answers 64 challenges in their life. */
const KEYS_MAX = 60;
const CONFIGURATION = {
  Settings: {
    ...HIGH_LIMITS,
    UnknownKeyFailuresPerMinute: 0,
    ActiveKeysLimit: KEYS_MAX,
  },
};

export async function runKillLoop(options: KillOptions): Promise<KillLoopReport> {
  const { seed } = options;
  const report: KillLoopReport = {
    seed,
    kills: 0,
    acknowledged: 0,
    recovered: 0,
    repeated: 0,
    sessions: 0,
    faults: [],
  };
  const writers: Writer[] = [];
  const full: Writer[] = [];
  await killLoop(options, { configuration: CONFIGURATION }, report, async () => ({
    async work(gateway, kill) {
      full.push(...writers.filter(isFull));
      writers.splice(0, writers.length, ...writers.filter((writer) => !isFull(writer)));
      while (writers.length < options.clients) writers.push(await newWriter(gateway.url));
      const writing: Promise<void>[] = [];
      const firstWrites = writers.map(
        (writer) =>
          new Promise<void>((resolve) => {
            const work = () => writeKeys(gateway, writer, report, resolve);
            writing.push(untilCut(report, work).finally(resolve));
          }),
      );
      // On a busy machine a login after a start takes longer than the longest delay: most kills wait for a first write.
      const ripe = kill % 4 === 3 ? Promise.resolve() : Promise.all(firstWrites);
      return { ripe, cut: Promise.all(writing), delayMs: WRITING_MS };
    },
    async check(gateway) {
      for (const writer of [...full, ...writers]) await checkAfterRestart(gateway, writer, report);
    },
  }));
  return report;
}

async function newWriter(url: string): Promise<Writer> {
  const person = await signUpAgent(url);
  return { person, acknowledged: new Map(), pending: undefined, bearer: undefined };
}

function isFull({ acknowledged }: Writer): boolean {
  return acknowledged.size >= KEYS_MAX - 2;
}

/** Adds keys to the account, one after the other, until the process is gone. */
async function writeKeys(
  gateway: RunningGateway,
  writer: Writer,
  report: KillLoopReport,
  onWritten: () => void,
): Promise<void> {
  const login = expectOk('mcp_login', await mcpLogin(gateway.url, writer.person.key, Date.now()));
  writer.bearer = String(login.json['result']?.['sessionId']);
  report.sessions += 1;
  while (!isFull(writer)) {
    const write = await newWrite(gateway, writer);
    writer.pending = write;
    settle(writer, write, await send(gateway, writer, write), report);
    onWritten();
  }
}

async function newWrite(gateway: RunningGateway, writer: Writer): Promise<Write> {
  const { publicKey } = newKey();
  const { challengeId, code } = await challenge(gateway.url, 'register', writer.person.cookie);
  return { idempotencyKey: publicKey, publicKey, body: { challengeId, code, publicKey } };
}

async function send(gateway: RunningGateway, writer: Writer, write: Write): Promise<Answer> {
  const headers = { Cookie: writer.person.cookie, 'Idempotency-Key': write.idempotencyKey };
  return await request(`${gateway.url}/auth/v1/keys/register_key`, { headers, body: write.body });
}

function settle(writer: Writer, write: Write, answer: Answer, report: KillLoopReport): void {
  expectOk('register_key', answer);
  writer.acknowledged.set(write.publicKey, String(answer.json['result']?.['key']?.['id']));
  writer.pending = undefined;
  report.acknowledged += 1;
}

async function checkAfterRestart(
  gateway: RunningGateway,
  writer: Writer,
  report: KillLoopReport,
): Promise<void> {
  const { pending } = writer;
  const before = await keysOf(gateway, writer);
  if (pending !== undefined) {
    const applied = before.some((key) => key.publicKey === pending.publicKey);
    if (applied) report.recovered += 1;
    else report.repeated += 1;
    // The same request in both cases: a challenge outlives the restart as well.
    settle(writer, pending, await send(gateway, writer, pending), report);
  }
  const keys = await keysOf(gateway, writer);
  const who = `writer ${writer.person.userId} after kill ${report.kills}`;
  for (const [publicKey, id] of writer.acknowledged) {
    const found = keys.filter((key) => key.publicKey === publicKey);
    if (found.length !== 1)
      report.faults.push(`${who}: acknowledged key ${id} is there ${found.length} times`);
    if (found[0] !== undefined && found[0].id !== id)
      report.faults.push(`${who}: ${id} came back as ${found[0].id}`);
  }
  const expected = writer.acknowledged.size + 1;
  if (keys.length !== expected)
    report.faults.push(`${who}: ${keys.length} keys, ${expected} were acknowledged`);
  if (writer.bearer === undefined) return;
  const list = await rpc(gateway.url, writer.bearer, { jsonrpc: '2.0', id: 1, method: 'resources/list' });
  if (list.json['result'] === undefined) report.faults.push(`${who}: its MCP session is gone: ${list.text}`);
}

async function keysOf(gateway: RunningGateway, writer: Writer): Promise<{ id: string; publicKey: string }[]> {
  const headers = { Cookie: writer.person.cookie };
  const answer = expectOk('user_keys', await request(`${gateway.url}/auth/v1/keys/user_keys`, { headers }));
  return answer.json['result'] as unknown as { id: string; publicKey: string }[];
}
