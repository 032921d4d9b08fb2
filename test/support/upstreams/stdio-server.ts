/** An MCP server over standard input and output whose tools misbehave, each as its name says. Run as a program of its own. */
import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

const TOOLS = [
  'echo',
  'progress',
  'die',
  'hang',
  'silent',
  'long',
  'longer',
  'endless',
  'flood',
  'junk',
  'children',
  'deaf',
  'environment',
  'asks',
  'talks',
];
const [, , mode = ''] = process.argv;
const LONG = 5 * 1024 * 1024;
/** Descriptor 1: what it takes is read before the next line. */
const write = (text: string) => {
  for (let bytes = Buffer.from(text); bytes.length > 0; ) bytes = bytes.subarray(writeSome(bytes));
};

function writeSome(bytes: Buffer): number {
  try {
    return writeSync(1, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
    throw error;
  }
}

const respond = (id: unknown, result: string) =>
  write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}\n`);
const text = (value: string) => `{"content":[{"type":"text","text":${JSON.stringify(value)}}]}`;
const notify = (method: string, params: object) =>
  write(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`);

interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly _meta?: { readonly progressToken?: unknown } };
}

/** Processes that outlive it: one of its group that ignores SIGTERM, and one that left the group. */
function startChildren(): number[] {
  const script =
    'process.on("SIGTERM", () => {}); process.on("SIGHUP", () => {}); setInterval(() => {}, 1000)';
  return [false, true].map((detached) => {
    const child = spawn(process.execPath, ['-e', script], {
      detached,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    child.unref();
    return child.pid ?? 0;
  });
}

const calls: Record<string, (message: Message, line: string) => void> = {
  echo({ id }, line) {
    const [, given = ''] = /"arguments":(.*?)(?:,"_meta".*)?\}\}$/.exec(line) ?? [];
    // The id last, as the official server writes it.
    write(
      `{"result":{"given":${given},"digits":1.50,"text":${JSON.stringify(line)}},"jsonrpc":"2.0","id":${JSON.stringify(id)}}\n`,
    );
  },
  progress({ id, params }) {
    const progressToken = params?._meta?.progressToken;
    for (const progress of [1, 2]) notify('notifications/progress', { progressToken, progress, total: 2 });
    respond(id, text('done'));
  },
  die() {
    process.stderr.write('something broke\n', () => process.exit(3));
  },
  hang() {
    // No answer.
  },
  silent() {
    process.stdin.pause();
  },
  long: ({ id }) => respond(id, text('x'.repeat(LONG))),
  longer({ id }) {
    write(`{"result":${text('x'.repeat(LONG))},"jsonrpc":"2.0","id":${JSON.stringify(id)}}\n`);
  },
  endless() {
    for (;;) write('x'.repeat(1024 * 1024));
  },
  flood({ id }) {
    for (let count = 0; count < 2_500; count += 1)
      if (count % 2 === 0) notify('notifications/message', { level: 'info', data: count });
      else respond('g0', '{}');
    respond(id, text('after the flood'));
  },
  junk({ id }) {
    write('ready to serve\n[1]\n\n');
    respond(id, text('after junk'));
  },
  children: ({ id }) => respond(id, text(JSON.stringify(startChildren()))),
  deaf({ id }) {
    respond(id, text('deaf'));
    for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
  },
  environment: ({ id }) => respond(id, text(JSON.stringify(process.env))),
  asks({ id }) {
    write('{"jsonrpc":"2.0","id":"g1","method":"sampling/createMessage","params":{}}\n');
    waiting.push((line) => respond(id, text(line)));
  },
  talks({ id }) {
    for (let count = 0; count < 200; count += 1) process.stderr.write(`line ${count}\n`);
    process.stderr.write('', () => respond(id, text('said')));
  },
};
/** Callbacks of its own requests. */
const waiting: ((line: string) => void)[] = [];

const answers: Record<string, (message: Message, line: string) => void> = {
  initialize({ id }) {
    const capabilities = { tools: { listChanged: true } };
    const serverInfo = { name: 'fixture', version: '1' };
    respond(id, JSON.stringify({ protocolVersion: '2025-06-18', capabilities, serverInfo }));
    if (mode === 'dies-at-once') process.exit(4);
  },
  'tools/list'({ id }) {
    const tools = TOOLS.map((name) => ({ name, inputSchema: { type: 'object' } }));
    respond(id, JSON.stringify({ tools }));
    if (mode === 'dies-listed') setTimeout(() => process.exit(5), 20);
  },
  'tools/call': (message, line) => calls[message.params?.name ?? '']?.(message, line),
};

if (mode === 'ignores-end') {
  setInterval(() => undefined, 1_000);
  process.on('SIGTERM', () => process.stderr.write('asked to end\n'));
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line) as Message;
  if (message.method === undefined) waiting.shift()?.(line);
  else answers[message.method]?.(message, line);
});
