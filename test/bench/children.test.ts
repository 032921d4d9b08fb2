/** Processes of the suite that are gone: each caller gets the error, and nothing else fails. */
import t from 'tap';
import { startGenerator, startWorker } from '../../bench/measure/children.ts';
import type { LoopPart } from '../../bench/scenario.ts';

t.test('children: a command to a stopped process is refused', async (t) => {
  const verifier = await startWorker('server', 'verify');
  t.ok((await verifier.ask<LoopPart>({ durationMs: 1 })).count > 0);
  await verifier.stop();
  await t.rejects(verifier.ask({ durationMs: 1 }), { code: 'ERR_IPC_CHANNEL_CLOSED' });
  const generator = startGenerator();
  await generator.stop();
  const plan = { url: 'http://127.0.0.1:9', requests: [''], connections: 1 };
  await t.rejects(generator.open(plan as never), { code: 'ERR_IPC_CHANNEL_CLOSED' });
});
