/** The check of a session: its idle end where several nodes see its uses, and the context that it makes. */
import t from 'tap';
import {
  authenticateSession,
  checkSession,
  initialVolatile,
} from '../../../src/actors/accounts/user-session-check.ts';
import { initialUser } from '../../../src/actors/accounts/user-state.ts';
import type { SessionRecord } from '../../../src/actors/accounts/user-types.ts';
import { TOUCH_INTERVAL_MS } from '../../../src/domain/sessions.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { DAY_MS, SECOND_MS } from '../../../src/domain/time.ts';

const IDLE_SECONDS = 600;
const SEEN_MS = 1_000_000;
const SESSION: SessionRecord = {
  ...{ id: '5', kind: 'browser', loginType: null, keyId: null, appId: null, hash: 'h' },
  ...{ createdMs: SEEN_MS, lastSeenMs: SEEN_MS, expiresMs: SEEN_MS + DAY_MS, ip: '', userAgent: '' },
};

function turnAfter(idleMs: number, hasPeers: boolean) {
  return {
    ...{ nowMs: SEEN_MS + idleMs, commandId: 'c', hasPeers },
    settings: new LiveSettings({ BrowserSessionIdleSeconds: IDLE_SECONDS }),
    newId: () => '1',
    randomBytes: (length: number) => new Uint8Array(length),
  };
}

function isOpenAfter(idleMs: number, hasPeers: boolean): boolean {
  const turn = turnAfter(idleMs, hasPeers);
  const state = { ...initialUser('1'), sessions: [SESSION] };
  return checkSession(state, initialVolatile(), { type: 'checkSession', sessionId: '5' }, turn);
}

t.test('idle session: without other nodes it ends with the limit', async (t) => {
  const limitMs = IDLE_SECONDS * SECOND_MS;
  t.same([isOpenAfter(limitMs - 1, false), isOpenAfter(limitMs, false)], [true, false]);
});

// covers C13
t.test('idle session: a use that another node has not written down yet may keep it open', async (t) => {
  const limitMs = IDLE_SECONDS * SECOND_MS + TOUCH_INTERVAL_MS;
  t.same([isOpenAfter(limitMs - 1, true), isOpenAfter(limitMs, true)], [true, false]);
});

t.test('session check: a context is made once, and anew for another state or role', async (t) => {
  const volatile = initialVolatile();
  const state = { ...initialUser('1'), sessions: [SESSION] };
  const adminPublicKeys = new Set<string>();
  const command = {
    type: 'enterSession',
    sessionId: '5',
    kind: 'browser',
    hash: 'h',
    adminPublicKeys,
  } as const;
  const check = (of: typeof state, role?: 'viewer') =>
    authenticateSession(of, volatile, { ...command, role }, turnAfter(0, false))?.session;
  const first = check(state);
  t.match(first, { id: '5', userId: '1', expiresMs: SESSION.expiresMs });
  t.equal(check(state), first);
  t.equal(check(state, 'viewer')?.role, 'viewer');
  t.equal(check(state)?.role, undefined);
  const later = { ...state, sessions: [{ ...SESSION, expiresMs: SESSION.expiresMs + 1 }] };
  t.equal(check(later)?.expiresMs, SESSION.expiresMs + 1);
  t.same([check(state)?.nickname, check({ ...state, nickname: 'Ada' })?.nickname], [undefined, 'Ada']);
  t.equal(check({ ...state, sessions: [] }), undefined);
});
