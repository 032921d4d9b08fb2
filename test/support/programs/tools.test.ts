/** Tools of tests that are missing here, skipped tests that are refused, and programs that are waited for. */
import t from 'tap';
import { outputOf, runSync } from '../../../kit/run-sync.ts';
import { AT_FULL_DEPTH, isHere, lacking, readTools, refusedSkips, TOOLS } from './tools.ts';

const row = { name: 'x', question: 'true', debianPackage: 'x', reason: '' };

t.test('tools: a program that is not installed is missing, one that fails is a fault', async (t) => {
  t.equal(isHere(row), true);
  t.equal(isHere({ ...row, question: 'no-such-program-of-gatehouse --version' }), false);
  t.throws(() => isHere({ ...row, question: 'echo broken >&2; exit 3' }), /x does not work: .* 3: broken/);
  t.equal(isHere({ ...row, question: 'false', reason: 'a container may forbid it' }), false);
});

t.test('tools: every row can be installed, or a machine may lack it', async (t) => {
  t.ok(TOOLS.length > 10);
  for (const { name, debianPackage, reason } of TOOLS) t.not(debianPackage !== '', reason !== '', name);
  t.throws(() => readTools('x :: true :: y\n'), /a row has four cells: x/);
  t.throws(() => lacking('sed'), /has no row sed/);
  t.equal(lacking('bash'), false);
});

t.test('skips: where all is required, only what a machine may lack is skipped', async (t) => {
  const tools = [row, { ...row, name: 'y', debianPackage: '', reason: 'none here' }];
  const skips = ['needs x', 'needs y', AT_FULL_DEPTH, true].map((skip) => ({ fullname: 'a test', skip }));
  t.same(refusedSkips(skips, undefined, 'full', tools), []);
  t.same(refusedSkips(skips, 'all', 'quick', tools), ['a test: needs x', 'a test: true']);
  t.same(refusedSkips(skips, 'all', 'full', tools), [
    'a test: needs x',
    `a test: ${AT_FULL_DEPTH}`,
    'a test: true',
  ]);
  t.throws(() => refusedSkips([], 'some', 'full', tools), /must be all, not "some"/);
});

t.test(
  'programs that are waited for: one that hangs is killed, and what it printed is in the fault',
  async (t) => {
    const hang = ['-c', 'echo begun; exec tail -f /dev/null'];
    t.throws(() => runSync('sh', hang, { boundMs: 1_000 }), /no end within 1000 ms\nbegun/);
    t.throws(() => outputOf('sh', ['-c', 'echo why >&2; exit 2']), /sh -c .* ended with 2\nwhy/);
    t.throws(() => outputOf('no-such-program-of-gatehouse', []), { code: 'ENOENT' });
    t.equal(outputOf('echo', ['said']), 'said\n');
  },
);
