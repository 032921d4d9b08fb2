/** Spans of port calls and of the commit that an answer waits for; without a sampled request nothing is made. */
import t from 'tap';
import type { ActorSystem } from '../../../src/actors/runtime/actor.ts';
import { CommitGroup } from '../../../src/actors/runtime/commit-group.ts';
import type { Ports, WorkerPort } from '../../../src/actors/runtime/ports.ts';
import { openTrace, type TraceSpan } from '../../../src/io/tracing/span.ts';
import { actorsBelow } from '../../../src/io/tracing/traced-actors.ts';
import { portsBelow, workersBelow } from '../../../src/io/tracing/traced-ports.ts';

function startTrace() {
  const ended: TraceSpan[] = [];
  const sink = { add: (span: TraceSpan) => void ended.push(span), dropped: () => undefined };
  const options = { traceparent: undefined, tracestate: undefined, sink, elapsed: () => 1, originMs: 0 };
  return { ended, root: openTrace(options, 0) };
}

const ONE_CRC: WorkerPort = { run: async () => ({ ok: true, value: 1 as never }) };

t.test(
  'traced ports: each call is a span with its failure, and gets and gives what the port does',
  async (t) => {
    const { ended, root } = startTrace();
    const released: string[] = [];
    const ports: Ports = {
      workers: ONE_CRC,
      files: {
        isShared: false,
        isDurable: false,
        hashSegment: async () => ({ ok: false as const, error: 'FileStorageFailed' as const }),
        publishSegments: async () => ({ ok: true, value: true }),
        removeSegments: async () => ({ ok: true, value: null }),
        create: async () => ({ ok: true, value: null }),
        publish: async () => ({ ok: false, error: 'StorageFull' }),
        publishCopy: async () => ({ ok: true, value: [] }),
        remove: async () => ({ ok: true, value: null }),
        reserve: async () => ({ ok: true, value: null }),
        release: (holder) => void released.push(holder),
        readTable: async () => ({ ok: true, value: [] }),
        hashRanges: async () => ({ ok: true, value: [] }),
      },
    };
    const traced = portsBelow(ports, root);
    t.equal(traced.chatFiles, undefined);
    t.strictSame(await traced.workers.run('checkEd25519Key', { publicKey: Buffer.from('secret') }), {
      ok: true,
      value: 1,
    });
    t.strictSame(await traced.files?.publish({ owner: '1', fileId: '2' }, 3), {
      ok: false,
      error: 'StorageFull',
    });
    traced.files?.release('holder');
    t.strictSame(released, ['holder']);
    t.strictSame(
      ended.map(({ name, errorType, parentId }) => [name, errorType, parentId === root.id]),
      [
        ['worker checkEd25519Key', undefined, true],
        ['storage publish', 'StorageFull', true],
        ['storage release', undefined, true],
      ],
    );
    t.notMatch(JSON.stringify(ended.map(({ attributes }) => attributes)), /secret|115,101/);
  },
);

t.test('traced ports: a request that is not sampled gets ports and actors themselves', async (t) => {
  const actors = {} as ActorSystem;
  t.equal(workersBelow(ONE_CRC, undefined), ONE_CRC);
  t.equal(actorsBelow(actors, undefined), actors);
});

t.test(
  'commit group: an observer is notified of the write, also of one that is under way already',
  async (t) => {
    const heard: string[] = [];
    const waiterOf = (name: string) => ({
      settle: () => undefined,
      observer: {
        gated: ({ commands }: { readonly commands: number }) => void heard.push(`${name} gated ${commands}`),
        writing: () => void heard.push(`${name} writing`),
      },
    });
    const group = new CommitGroup();
    group.commands = 2;
    group.gate(waiterOf('first'), 1, undefined);
    group.gate({ settle: () => undefined }, 1, undefined);
    group.writing();
    group.gate(waiterOf('late'), 1, undefined);
    t.strictSame(heard, ['first gated 2', 'first writing', 'late gated 2', 'late writing']);
  },
);
