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
  signUp,
  updateKey,
} from './agent.ts';
import { launch, type RunningGateway } from './launch.ts';

export interface KillLoopOptions {
  readonly kills: number;
  readonly dataPath: string;
  /** Clients that write at the same time. */
  readonly writers: number;
  /** Shortest and longest time of writing before a kill, milliseconds. */
  readonly writingMs: readonly [number, number];
  /** 0 to 1; the caller owns the randomness. */
  readonly random: () => number;
}

export interface KillLoopReport {
  kills: number;
  acknowledged: number;
  /** Writes whose answer the kill swallowed and that were found applied when sent again. */
  recovered: number;
  /** Writes that were sent again and had not been applied before. */
  repeated: number;
  sessions: number;
  /** Each line is a broken promise. Empty when all is well. */
  faults: string[];
}

interface Write {
  readonly idempotencyKey: string;
  readonly publicKey: string;
  body: { challengeId: number; code: string; publicKey: string };
}

interface Writer {
  readonly person: Person;
  readonly acknowledged: Map<string, string>;
  pending: Write | undefined;
  bearer: string | undefined;
}

const KEYS_MAX = 1_000;
const CONFIGURATION = {
  Settings: {
    ApiRPSLimit: 100_000,
    IpRPSLimit: 100_000,
    SessionApiRPSLimit: 100_000,
    UserApiRPSLimit: 100_000,
    PubKeyApiRPSLimit: 100_000,
    McpApiRPSLimit: 100_000,
    UnknownKeyFailuresPerMinute: 0,
    ActiveKeysLimit: KEYS_MAX,
  },
};

export async function runKillLoop(options: KillLoopOptions): Promise<KillLoopReport> {
  const report: KillLoopReport = {
    kills: 0,
    acknowledged: 0,
    recovered: 0,
    repeated: 0,
    sessions: 0,
    faults: [],
  };
  const start = () => launch({ dataPath: options.dataPath, configuration: CONFIGURATION });
  let gateway = await start();
  const writers: Writer[] = [];
  for (let at = 0; at < options.writers; at += 1) {
    const person = await signUp(gateway.url);
    expectOk('update_key', await updateKey(gateway.url, person, { mcpAccess: true }));
    writers.push({ person, acknowledged: new Map(), pending: undefined, bearer: undefined });
  }
  while (report.kills < options.kills) {
    const [shortest, longest] = options.writingMs;
    const running = gateway;
    const writing: Promise<void>[] = [];
    const logins = writers.map(
      (writer) =>
        new Promise<void>((resolve) => {
          writing.push(writeUntilCut(running, writer, report, resolve).finally(resolve));
        }),
    );
    // On a busy machine the first logins after a start take longer than the longest delay: most kills wait for them.
    if (report.kills % 4 !== 0) await Promise.all(logins);
    const delayMs = shortest + options.random() * (longest - shortest);
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    await gateway.kill();
    await Promise.all(writing);
    report.kills += 1;
    gateway = await start();
    for (const writer of writers) await checkAfterRestart(gateway, writer, report);
  }
  await gateway.stop();
  return report;
}

/** Adds keys to the account, one after the other, until the process is gone. */
async function writeUntilCut(
  gateway: RunningGateway,
  writer: Writer,
  report: KillLoopReport,
  loggedIn: () => void,
): Promise<void> {
  try {
    const login = expectOk('mcp_login', await mcpLogin(gateway.url, writer.person.key, Date.now()));
    writer.bearer = String(login.json['result']?.['sessionId']);
    report.sessions += 1;
    loggedIn();
    while (writer.acknowledged.size < KEYS_MAX - 2) {
      const write = await newWrite(gateway, writer);
      writer.pending = write;
      settle(writer, write, await send(gateway, writer, write), report);
    }
  } catch (error) {
    // A connection that the kill cut is what this loop is about; an answer that is not 200 is a fault.
    if (!(error instanceof TypeError)) report.faults.push(String(error));
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
    else {
      // Challenges are volatile by design, so an unapplied write needs a fresh one.
      report.repeated += 1;
      const { challengeId, code } = await challenge(gateway.url, 'register', writer.person.cookie);
      pending.body = { challengeId, code, publicKey: pending.publicKey };
    }
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
