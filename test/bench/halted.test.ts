/** Processes of scenarios that wait are halted, with all that they started, and go on afterwards. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { haltChildren, resume } from '../../bench/halted.ts';
import { statOf } from '../../bench/processes.ts';

const stateOf = (pid: number) => statOf(pid)?.[0];

/** A signal is taken when its process next runs: on a busy machine later than the call that sent it. */
async function standStill(pids: readonly number[]): Promise<void> {
  while (pids.some((pid) => stateOf(pid) !== 'T')) await new Promise((resolve) => setImmediate(resolve));
}

/** Says its own process and that of the one it starts. */
const FAMILY = `
const { spawn } = require('node:child_process');
const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
process.stdout.write(String(child.pid));
process.stdin.resume();
process.on('SIGTERM', () => { child.kill('SIGKILL'); process.exit(); });
`;

async function family(): Promise<{ readonly child: ChildProcess; readonly pids: readonly number[] }> {
  const child = spawn(process.execPath, ['-e', FAMILY], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [text] = await once(child.stdout, 'data');
  return { child, pids: [child.pid ?? 0, Number(text)] };
}

const skip = process.platform === 'linux' ? false : 'there is no /proc';

t.test('halted: children and theirs stand still until they are resumed', { skip }, async (t) => {
  const first = await family();
  const halted = haltChildren();
  t.same([...halted].sort(), [...first.pids].sort(), 'nobody else');
  await standStill(first.pids);
  t.same(first.pids.map(stateOf), ['T', 'T']);
  const second = await family();
  t.same(
    [...haltChildren()].sort(),
    [...second.pids].sort(),
    'those that stand still already are not its own',
  );
  await standStill(second.pids);
  resume(halted);
  t.same(second.pids.map(stateOf), ['T', 'T'], 'these stand still');
  t.ok(
    first.pids.every((pid) => stateOf(pid) !== 'T'),
    'the others go on',
  );
  for (const { child, pids } of [first, second]) {
    resume(pids);
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  resume(halted);
  t.same(haltChildren(), [], 'nobody is left, and who is gone is no fault');
});
