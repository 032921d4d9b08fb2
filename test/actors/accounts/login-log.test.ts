/** The login log against a plain reference: the newest accepted and the newest refused entries, each in its bound. */
import fc from 'fast-check';
import t from 'tap';
import {
  keptLog,
  LOG_ACCEPTED_MAX,
  LOG_REFUSED_MAX,
  type LogEntry,
} from '../../../src/actors/accounts/login-log.ts';
import { evolveUser, initialUser } from '../../../src/actors/accounts/user-state.ts';
import { runs } from '../../support/depth.ts';

function entry(id: number, ok: boolean): LogEntry {
  return {
    id: String(id),
    utcMs: id,
    event: 'login',
    ok,
    error: ok ? null : 'Access denied',
    kind: 'mcp',
    loginType: 'McpBasic',
    keyId: null,
    appId: null,
    ip: '',
    userAgent: '',
  };
}

t.test('login log: shows the newest of each kind in their order, and never holds many more', (t) => {
  const loads = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 150 })), { maxLength: 8 });
  fc.assert(
    fc.property(loads, (sequence) => {
      let state = initialUser('7');
      const all: LogEntry[] = [];
      for (const [ok, times] of sequence) {
        for (let count = 0; count < times; count += 1) {
          all.push(entry(all.length, ok));
          state = evolveUser(state, { type: 'logged', entry: entry(all.length - 1, ok) });
          if (state.log.length > LOG_ACCEPTED_MAX + LOG_REFUSED_MAX + 32) return false;
        }
      }
      const newest = (ok: boolean, max: number) => all.filter((each) => each.ok === ok).slice(-max);
      const wanted = [...newest(true, LOG_ACCEPTED_MAX), ...newest(false, LOG_REFUSED_MAX)]
        .map(({ utcMs }) => utcMs)
        .sort((a, b) => a - b);
      const shown = keptLog(state.log).map(({ utcMs }) => utcMs);
      return shown.length === wanted.length && shown.every((id, place) => id === wanted[place]);
    }),
    runs(300),
  );
  t.end();
});
