import t from 'tap';
import type { Identity } from '../../../src/io/cluster/handshake.ts';
import { createLinkLog } from '../../../src/io/cluster/link-log.ts';
import type { Log } from '../../../src/io/observability/log.ts';
import { LOG_ID } from '../../support/cluster/node.ts';

const peer: Identity = { node: 2, incarnation: 1, logId: LOG_ID, version: '0.2.0' };

function startLog() {
  const lines: unknown[][] = [];
  const clock = { nowMs: 0 };
  const log: Log = { write: (...line) => void lines.push(line) };
  return { observer: createLinkLog({ log, clock: () => clock.nowMs }), lines, clock };
}

t.test('link log: every opening has a line, and every end but that of a stop', async (t) => {
  const { observer, lines } = startLog();
  observer.onOpened(peer, true);
  observer.onOpened(peer, false);
  observer.onClosed(2, true, 'silent');
  observer.onClosed(2, false, 'stopped');
  t.same(lines, [
    ['linkOpened', { node: 2, direction: 'out' }],
    ['linkOpened', { node: 2, direction: 'in' }],
    ['linkClosed', { node: 2, direction: 'out', reason: 'silent' }],
  ]);
});

t.test('link log: a failure has a line when its reason is new, and after a link again', async (t) => {
  const { observer, lines } = startLog();
  for (let attempt = 0; attempt < 3; attempt += 1) observer.onFailed(2, { lost: 'unreachable' });
  observer.onFailed(3, { lost: 'unreachable' });
  observer.onFailed(2, { refused: 'secret', byPeer: true });
  observer.onOpened(peer, true);
  observer.onFailed(2, { refused: 'secret', byPeer: false });
  t.same(lines, [
    ['linkFailed', { node: 2, reason: 'unreachable' }],
    ['linkFailed', { node: 3, reason: 'unreachable' }],
    ['linkFailed', { node: 2, reason: 'secret' }],
    ['linkOpened', { node: 2, direction: 'out' }],
    ['linkFailed', { node: 2, reason: 'secret' }],
  ]);
});

t.test(
  'link log: refused connections have one line a minute for each reason, and bugs one each',
  async (t) => {
    const { observer, lines, clock } = startLog();
    for (let count = 0; count < 100; count += 1) observer.onRefused('192.0.2.1', 'secret');
    observer.onRefused('192.0.2.2', 'frame');
    clock.nowMs = 60_000;
    observer.onRefused('192.0.2.3', 'secret');
    const bug = new TypeError('planted');
    observer.onBug('ask', bug);
    t.same(lines, [
      ['linkRefused', { clientAddress: '192.0.2.1', reason: 'secret' }],
      ['linkRefused', { clientAddress: '192.0.2.2', reason: 'frame' }],
      ['linkRefused', { clientAddress: '192.0.2.3', reason: 'secret' }],
      ['nodeCallFailed', { command: 'ask', err: bug }],
    ]);
  },
);
