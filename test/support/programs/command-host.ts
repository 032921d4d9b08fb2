/** A child process that runs command lines of the program one after the other: its modules are loaded once. */
import { run } from '../../../src/cli/run.ts';

class Ended extends Error {}

process.exit = (code) => {
  process.exitCode = code ?? undefined;
  throw new Ended();
};

let printed = { stdout: '', stderr: '' };
for (const name of ['stdout', 'stderr'] as const)
  process[name].write = (text: string | Uint8Array) => {
    printed[name] += String(text);
    return true;
  };

process.on('message', async (args: readonly string[]) => {
  printed = { stdout: '', stderr: '' };
  process.exitCode = undefined;
  try {
    await run(args);
  } catch (error) {
    if (!(error instanceof Ended)) throw error;
  }
  process.send?.({ code: Number(process.exitCode ?? 0), signal: null, ...printed });
});
