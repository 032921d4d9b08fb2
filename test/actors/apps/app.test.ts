/** Turns of the app actor, and the access check of its index entry. */
import fc from 'fast-check';
import t from 'tap';
import { type AppProtocol, app } from '../../../src/actors/apps/app.ts';
import {
  type AppIndexEntry,
  formatIndexEntry,
  isSessionValid,
  mayOpenSession,
  parseIndexEntry,
  ticksOf,
} from '../../../src/actors/apps/app-access-index.ts';
import { type AppFlags, type AppState, evolveApp, viewOf } from '../../../src/actors/apps/app-state.ts';
import { isRefusal, type Refusal, type Turn } from '../../../src/actors/runtime/actor.ts';
import {
  APP_ACCESS_MAX,
  KEY_OVERLAP_MS,
  PARTICIPANTS_MAX,
  sentKeyOf,
  validKeys,
} from '../../../src/domain/apps.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { runs } from '../../support/depth.ts';

type AppCommand = AppProtocol['command'];

const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };
type AppOutcome = Exclude<ReturnType<typeof app.decide>, Refusal>;

const OWNER = '101';
const REMOVE: AppCommand = {
  type: 'remove',
  commandId: 'c',
  ownerId: OWNER,
  reply: { appId: '77', sessionsClosed: 1 },
  origin: ORIGIN,
};
const KEY = 'A'.repeat(43);
const OTHER_KEY = `${'A'.repeat(42)}E`;
const OPEN: Partial<AppFlags> = { approved: true, mcpEnabled: true };

let ticks = 1000;

function turn(nowMs = 5_000): Turn {
  ticks += 1;
  const now = String(ticks);
  return {
    nowMs,
    commandId: 'c1',
    settings: new LiveSettings(),
    hasPeers: false,
    newId: () => now,
    randomBytes: (length) => new Uint8Array(length),
  };
}

function decide(
  state: AppState,
  command: AppCommand,
  nowMs?: number,
): { state: AppState; outcome: AppOutcome } {
  const outcome = app.decide(state, command, turn(nowMs));
  if (isRefusal(outcome)) throw new Error(outcome.refuse);
  return { outcome, state: (outcome.events ?? []).reduce(evolveApp, state) };
}

function configure(patch: object): AppCommand {
  const key = { keyId: 'k', sealed: 's' };
  return { type: 'configure', commandId: 'c0', ownerId: OWNER, patch, key, origin: ORIGIN };
}

function administer(flags: Partial<AppFlags>): AppCommand {
  return { type: 'administer', flags, by: '1', address: '192.0.2.9' };
}

function registered(...commands: AppCommand[]): AppState {
  const first = configure({ name: 'Shop', url: 'https://shop.example' });
  return [first, ...commands].reduce((state, command) => decide(state, command).state, app.initial('77'));
}

const told = ({ send = [] }: AppOutcome) =>
  send.map(({ toId, command }) => [toId, (command as { type: string }).type]);

t.test('index entry: what is written is read again, anything else is a bug', async (t) => {
  const id = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String);
  const indexEntry: fc.Arbitrary<AppIndexEntry> = fc.record({
    ownerId: id,
    openedTick: fc.option(id),
    keyTick: id,
    mcpPublicKey: fc.constantFrom(null, KEY, OTHER_KEY),
  });
  fc.assert(
    fc.property(
      indexEntry,
      (value) => JSON.stringify(parseIndexEntry(formatIndexEntry(value))) === JSON.stringify(value),
    ),
    runs(),
  );
  for (const text of ['', '101', '101:5', '101:x:0:', `101:5:0:${KEY}A`, '101:5:0:short'])
    t.throws(() => parseIndexEntry(text), text);
});

t.test(
  'access check: closed to all; open to the owner and the explicit key; earlier sessions stay invalid',
  async (t) => {
    const indexEntry: AppIndexEntry = { ownerId: OWNER, openedTick: '50', keyTick: '60', mcpPublicKey: KEY };
    const owner = { userId: OWNER, publicKey: OTHER_KEY };
    const explicit = { userId: '102', publicKey: KEY };
    const outsider = { userId: '103', publicKey: OTHER_KEY };
    t.same(
      [owner, explicit, outsider, { userId: '104', publicKey: null }].map((caller) =>
        mayOpenSession(indexEntry, caller),
      ),
      [true, true, false, false],
    );
    const closed = { ...indexEntry, openedTick: null };
    for (const caller of [owner, explicit]) {
      t.equal(mayOpenSession(closed, caller), false);
      t.equal(mayOpenSession(undefined, caller), false);
      t.equal(isSessionValid(closed, caller, { id: '99' }), false);
      t.equal(isSessionValid(undefined, caller, { id: '99' }), false);
    }
    t.equal(
      mayOpenSession({ ...indexEntry, mcpPublicKey: null }, { userId: '104', publicKey: null }),
      false,
      'no key is no match',
    );
    t.same(
      ['49', '50', '51', '9', '100'].map((id) => isSessionValid(indexEntry, owner, { id })),
      [false, false, true, false, true],
    );
    t.same(
      ['55', '60', '61'].map((id) => isSessionValid(indexEntry, explicit, { id })),
      [false, false, true],
    );
    t.equal(isSessionValid(indexEntry, outsider, { id: '99' }), false);
    const entries = [
      ['50', '60'],
      ['50', '61'],
      ['49', '60'],
      ['51', '60'],
    ].map(([openedTick = '', keyTick = '']) => ({ id: '9', entry: { openedTick, keyTick } }));
    t.same(
      entries.map((session) => isSessionValid(indexEntry, owner, session)),
      [true, true, false, false],
      'of a session that keeps its entry, ids do not matter: the opening is the same',
    );
    t.same(
      entries.map((session) => isSessionValid(indexEntry, explicit, session)),
      [true, false, false, false],
      'and for the explicit key, its configuration too',
    );
  },
);

t.test(
  'app: closing and opening again, or another key and the first one back, let no old session in',
  async (t) => {
    const open = decide(registered(), administer({ ...OPEN, mcpPublicKey: KEY })).state;
    const indexEntry = (state: AppState) => parseIndexEntry(formatIndexEntry(state));
    const entry = ticksOf(indexEntry(open));
    if (entry === undefined) throw new Error('it is open');
    const id = turn().newId();
    const owner = { userId: OWNER, publicKey: null };
    const explicit = { userId: '102', publicKey: KEY };
    // A session that keeps its entry, and one of before entries were kept.
    const valid = (state: AppState) =>
      [{ id, entry }, { id }].map((session) =>
        [owner, explicit].map((caller) => isSessionValid(indexEntry(state), caller, session)),
      );
    t.same(valid(open), [
      [true, true],
      [true, true],
    ]);
    const again = [{ disabled: true }, { disabled: false }].reduce<AppState>(
      (state, flags) => decide(state, administer(flags)).state,
      open,
    );
    t.same(valid(again), [
      [false, false],
      [false, false],
    ]);
    const back = [OTHER_KEY, KEY].reduce<AppState>(
      (state, mcpPublicKey) => decide(state, administer({ mcpPublicKey })).state,
      open,
    );
    t.same(valid(back), [
      [true, false],
      [true, false],
    ]);
    const more = decide(open, administer({ approved: true, mcpPublicKey: KEY })).state;
    t.equal(more, open, 'a change that changes nothing');
  },
);

t.test(
  'app: a closing is announced to the owner and all it acted for, another key to the others alone',
  async (t) => {
    const state = registered(
      administer(OPEN),
      { type: 'join', userId: '102' },
      { type: 'join', userId: '103' },
    );
    t.same(told(decide(state, administer({ disabled: true })).outcome), [
      [OWNER, 'appClosed'],
      ['102', 'appClosed'],
      ['103', 'appClosed'],
      ['77', 'tell'],
    ]);
    t.same(told(decide(state, administer({ mcpPublicKey: KEY })).outcome), [
      ['102', 'appClosed'],
      ['103', 'appClosed'],
    ]);
    const closed = decide(state, administer({ disabled: true })).state;
    t.same(told(decide(closed, administer({ approved: false })).outcome), [['77', 'tell']], 'closed before');
    t.same(told(decide(closed, administer({ disabled: false })).outcome), [['77', 'tell']]);
  },
);

const rotate = (keyId: string): AppCommand => {
  const key = { keyId, sealed: `s-${keyId}` };
  return { type: 'rotateKey', userId: OWNER, key, origin: ORIGIN };
};
const FINISH: AppCommand = { type: 'endKeyOverlap', userId: OWNER, origin: ORIGIN };

/** Ids of the keys that are valid, and of the one that deliveries carry. */
function keysOf(state: AppState, nowMs: number): { valid: string[]; sent: string | undefined } {
  const valid = validKeys(state.keys, nowMs);
  return { valid: valid.map(({ keyId }) => keyId), sent: sentKeyOf(valid)?.keyId };
}

// covers R64 R85
t.test('app: after a rotation the former key is sent for 24 hours, and both are valid', async (t) => {
  const end = 5_000 + KEY_OVERLAP_MS;
  t.equal(KEY_OVERLAP_MS, 86_400_000);
  const state = registered(rotate('k2'));
  t.same(keysOf(state, 5_000), { valid: ['k2', 'k'], sent: 'k' });
  t.same(keysOf(state, end - 1), { valid: ['k2', 'k'], sent: 'k' });
  t.same(keysOf(state, end), { valid: ['k2'], sent: 'k2' });
  const again = decide(state, rotate('k3'), 6_000).state;
  t.same(keysOf(again, 6_000), { valid: ['k3', 'k'], sent: 'k' }, 'what is sent stays what it was');
  t.same(keysOf(again, end + 999), { valid: ['k3', 'k'], sent: 'k' }, 'for 24 hours from the last rotation');
  t.same(keysOf(again, end + 1_000), { valid: ['k3'], sent: 'k3' });
  const later = decide(state, rotate('k3'), end).state;
  t.same(keysOf(later, end), { valid: ['k3', 'k2'], sent: 'k2' }, 'the overlap before was over');
});

// covers R64 R85
t.test('app: the owner ends an overlap; a second time changes nothing and answers the same', async (t) => {
  const state = registered(rotate('k2'));
  const { state: ended, outcome } = decide(state, FINISH);
  t.same(keysOf(ended, 5_000), { valid: ['k2'], sent: 'k2' });
  const record = { event: 'app_key_ended', userId: OWNER, fields: { appId: '77', keyId: 'k' } };
  t.match(outcome.audit, [record]);
  t.same(outcome.reply, viewOf(ended));
  for (const [note, quiet, nowMs] of [
    ['ended before', ended, 6_000],
    ['over by itself', state, 5_000 + KEY_OVERLAP_MS],
    ['never rotated', registered(), 6_000],
  ] as const)
    t.same(decide(quiet, FINISH, nowMs).outcome, { reply: viewOf(quiet) }, note);
  const others: AppCommand = { type: 'endKeyOverlap', userId: '102', origin: ORIGIN };
  for (const [note, asked, command] of [
    ['of another account', state, others],
    ['not registered', app.initial('78'), FINISH],
  ] as const)
    t.match(app.decide(asked, command, turn()), { refuse: 'NotFound' }, note);
  t.equal(app.frees?.(FINISH), true, 'also while the disk is full');
});

t.test('app: whom it acted for is kept once each, without the owner, up to a bound', async (t) => {
  const join = (userId: string): AppCommand => ({ type: 'join', userId });
  const state = registered(join('102'), join('102'), join(OWNER));
  t.same(state.participants, ['102']);
  const participants = Array.from({ length: PARTICIPANTS_MAX }, (_, place) => `${place}`);
  t.equal(decide({ ...state, participants }, join('9999')).state.participants.length, PARTICIPANTS_MAX);
  t.same(
    told(decide(app.initial('78'), join('102')).outcome),
    [['102', 'appGone']],
    'there is no application',
  );
  t.ok(APP_ACCESS_MAX < PARTICIPANTS_MAX);
});

t.test('app: a registration that changes nothing writes nothing and still answers', async (t) => {
  const state = registered(configure({ netTypes: [1], webhookUrl: 'https://a.example' }));
  const same = configure({ name: 'Shop', netTypes: [1], webhookUrl: 'https://a.example' });
  const { outcome } = decide(state, same);
  t.same([outcome.events, outcome.claims, outcome.audit], [[], [], []]);
  t.same(told(outcome), [[OWNER, 'appSettled']]);
  const { outcome: changed } = decide(state, configure({ netTypes: [2], name: 'Shop' }));
  t.match(changed.audit, [
    { event: 'app_updated', userId: OWNER, fields: { appId: '77', changed: 'netTypes' } },
  ]);
});

t.test('app: once removed it is forgotten but for its owner; all that comes later is refused', async (t) => {
  const state = registered(administer(OPEN), { type: 'join', userId: '102' });
  const { state: removed, outcome } = decide(state, REMOVE);
  t.same(removed, { ...app.initial('77'), phase: 'removed', ownerId: OWNER });
  t.equal(viewOf(removed), undefined);
  t.match(outcome.claims, [{ index: 'appId', key: '77', owner: null, replaces: formatIndexEntry(state) }]);
  t.same(told(outcome), [
    [OWNER, 'appSettled'],
    ['102', 'appGone'],
  ]);
  t.match(app.decide(removed, administer(OPEN), turn()), { refuse: 'NotFound' });
  const key = { keyId: 'k2', sealed: 's2' };
  t.match(app.decide(removed, { type: 'rotateKey', userId: OWNER, key, origin: ORIGIN }, turn()), {
    refuse: 'NotFound',
  });
  t.throws(() => app.decide(removed, configure({}), turn()), 'its account never sends that');
  t.same(told(decide(removed, REMOVE).outcome), [[OWNER, 'appSettled']], 'a second removal only answers');
});

t.test('app: what ends something is served while the disk is full, the rest is not', async (t) => {
  const frees = (command: AppCommand) => app.frees?.(command);
  t.same(
    [
      REMOVE,
      administer({ approved: false }),
      administer({ mcpEnabled: false }),
      administer({ disabled: true }),
    ].map(frees),
    [true, true, true, true],
  );
  t.same([configure({}), administer(OPEN), administer({ mcpPublicKey: KEY })].map(frees), [
    false,
    false,
    false,
  ]);
});
