/** Bytes that a program allocates, as its meter counts them (allocation-meter.cts): machine and neighbours do not move them. */
import type { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

/** Arguments of a Node whose allocations are counted. Its descriptor 3 must be a pipe. */
export const METER = [
  '--require',
  fileURLToPath(new URL('./allocation-meter.cjs', import.meta.url)),
] as const;

/** Bytes on V8's heap that the main thread of a program with the meter has allocated since this was called before. */
export function allocatedBytes(child: ChildProcess): Promise<number> {
  const pipe = child.stdio[3];
  if (!(pipe instanceof Socket)) throw new TypeError('descriptor 3 of the program is no pipe');
  return new Promise((resolve, reject) => {
    let text = '';
    const settle = (act: () => void) => {
      pipe.off('data', read);
      child.off('exit', gone);
      act();
    };
    const read = (bytes: Buffer) => {
      text += bytes.toString('latin1');
      if (text.endsWith('\n')) settle(() => resolve(Number(text)));
    };
    const gone = () => settle(() => reject(new Error('the program ended')));
    pipe.on('data', read);
    child.once('exit', gone);
    child.kill('SIGUSR2');
  });
}
