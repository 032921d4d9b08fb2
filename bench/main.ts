/** The load-testing suite: `npm run bench -- <scenario> [options]`. Exit 64 for bad usage, 1 when a run fails. */
import { writeFileSync } from 'node:fs';
import { parseOptions, USAGE } from './options.ts';
import { json, table } from './report.ts';
import { Bench, type Scenario } from './scenario.ts';
import { download, downloadRange } from './scenarios/download.ts';
import { empty } from './scenarios/empty.ts';
import { eventsIntake } from './scenarios/events-intake.ts';
import { filePieces } from './scenarios/file-pieces.ts';
import { mcpCall } from './scenarios/mcp-call.ts';
import { mcpLogin } from './scenarios/mcp-login.ts';
import { passkey } from './scenarios/passkey.ts';
import { restProxy } from './scenarios/rest-proxy.ts';
import { sseFanout } from './scenarios/sse-fanout.ts';
import { sseStalled } from './scenarios/sse-stalled.ts';
import { turn } from './scenarios/turn.ts';
import { uploadV1, uploadV2 } from './scenarios/upload.ts';
import { webhooks } from './scenarios/webhooks.ts';

const SCENARIOS: readonly Scenario[] = [
  empty,
  turn,
  mcpCall,
  restProxy,
  mcpLogin,
  passkey,
  filePieces,
  uploadV1,
  uploadV2,
  download,
  downloadRange,
  eventsIntake,
  webhooks,
  sseFanout,
  sseStalled,
];
const EX_USAGE = 64;

async function run(args: readonly string[]): Promise<number> {
  const parsed = parseOptions(
    args,
    SCENARIOS.map(({ name }) => name),
  );
  const scenario = parsed.ok ? SCENARIOS.find(({ name }) => name === parsed.options.scenario) : undefined;
  if (!parsed.ok || scenario === undefined) {
    const faults = parsed.ok ? [] : parsed.faults;
    const list = SCENARIOS.map(({ name, summary }) => `  ${name.padEnd(18)} ${summary}`);
    process.stderr.write(`${[...faults, '', USAGE, 'Scenarios:', ...list].join('\n')}\n`);
    return EX_USAGE;
  }
  const progress = makeProgress();
  const bench = new Bench(parsed.options, progress.show);
  try {
    const result = await scenario.run(bench);
    progress.clear();
    process.stdout.write(table(scenario.name, parsed.options, result));
    if (parsed.options.jsonFile !== undefined)
      writeFileSync(
        parsed.options.jsonFile,
        json(scenario.name, parsed.options, result, new Date().toISOString()),
      );
    return 0;
  } finally {
    await bench.close();
  }
}

/** One line that is rewritten on a terminal; elsewhere only the lines that name a new step. */
function makeProgress(): { show(text: string): void; clear(): void } {
  const { stderr } = process;
  if (stderr.isTTY)
    return {
      show: (text) => void stderr.write(`\r\x1b[K${text}`),
      clear: () => void stderr.write('\r\x1b[K'),
    };
  return {
    show: (text) => void (/ answers in /.test(text) || stderr.write(`${text}\n`)),
    clear: () => undefined,
  };
}

run(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
  },
);
