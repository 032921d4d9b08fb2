/**
 * Applications against a reference that knows nothing of actors, messages or indexes: any history of registrations,
 * approvals, logins, grants and restarts, and after every step the same lists and the same sessions.
 */
import fc from 'fast-check';
import t from 'tap';
import { createSessionLookup } from '../../../src/io/http/checks/session-lookup.ts';
import { type Account, type Answer, cookie, type Key, makeKey } from '../../support/account.ts';
import { type AdminFixture, startAdmin } from '../../support/admin.ts';
import { count, runs } from '../../support/depth.ts';
import { type StepOf, step } from '../../support/steps.ts';

const RUNS = 15;
const NAMES = ['Shop', 'Mill', 'Bank'];
const URLS = ['https://a.example', 'https://b.example', 'https://c.example'];
const PEOPLE = 2;

interface Flags {
  approved?: boolean;
  mcpEnabled?: boolean;
  disabled?: boolean;
  explicit?: number | null;
}

const who = fc.nat({ max: PEOPLE - 1 });
const place = fc.nat({ max: 5 });
/** Number of the person whose key it is; null: none. */
const explicit = fc.constantFrom(0, 1, null);
const naming = { name: fc.constantFrom(...NAMES), url: fc.constantFrom(...URLS) };
const OPEN = { approved: true, mcpEnabled: true, disabled: false };
const switches = { approved: fc.boolean(), mcpEnabled: fc.boolean(), disabled: fc.boolean() };
const flags = fc.oneof(
  fc.constant<Flags>(OPEN),
  fc.record({ ...switches, explicit }, { requiredKeys: [] }),
  fc.constantFrom<Flags>(...[0, 1].map((key) => ({ approved: true, mcpEnabled: true, explicit: key }))),
);
const netTypes = fc.array(fc.nat({ max: 255 }), { maxLength: 2 });
const anyStep = fc.oneof(
  step<'upsert', { who: number; name: string; url: string }, { app: number; netTypes: number[] }>(
    2,
    'upsert',
    {
      who,
      ...naming,
    },
  ),
  step(3, 'upsert', { who }, { app: place, ...naming, netTypes }),
  step(3, ['rotate', 'finish', 'revoke', 'grant'], { who, app: place }),
  step(1, 'remove', { who, app: place }),
  step(9, 'login', { who, app: place }),
  step(4, 'administer', { app: place, flags }),
  step(1, 'restart'),
);
const steps = fc.array(anyStep, { minLength: 15, maxLength: 40 });
type Step = StepOf<typeof anyStep>;

interface ModelApp {
  id: string;
  owner: number;
  name: string;
  url: string;
  netTypes: number[];
  approved: boolean;
  mcpEnabled: boolean;
  disabled: boolean;
  explicit: number | null;
  removed: boolean;
  keys: number;
}

interface ModelSession {
  readonly token: string;
  readonly app: ModelApp;
  readonly who: number;
  live: boolean;
}

/** The rules in their plainest form. Each returns the HTTP status. */
class Model {
  readonly apps: ModelApp[] = [];
  readonly sessions: ModelSession[] = [];
  readonly access = Array.from(
    { length: PEOPLE },
    () => new Map<ModelApp, { source: string; revoked: boolean }>(),
  );

  of(who: number): ModelApp[] {
    return this.apps.filter((app) => app.owner === who && !app.removed);
  }

  /** Any number names an application, where there is one. */
  at(place: number): ModelApp | undefined {
    return this.apps[place % Math.max(1, this.apps.length)];
  }

  isOpen(app: ModelApp): boolean {
    return !app.removed && app.approved && app.mcpEnabled && !app.disabled;
  }

  end(which: (session: ModelSession) => boolean): void {
    for (const session of this.sessions) if (which(session)) session.live = false;
  }

  /** Returns the target of a registration: an application, a new one, or a refusal. */
  target(step: Extract<Step, { do: 'upsert' }>): ModelApp | 'new' | 400 | 404 {
    const own = this.of(step.who);
    if (step.app !== undefined) {
      const named = this.at(step.app);
      return named !== undefined && own.includes(named) ? named : 404;
    }
    const { name, url } = step;
    const found =
      name === undefined && url === undefined
        ? own.length === 1
          ? own[0]
          : undefined
        : (own.find((app) => app.url === url) ?? own.find((app) => app.name === name));
    if (found !== undefined) return found;
    return name === undefined || url === undefined ? 400 : 'new';
  }

  login(who: number, app: ModelApp | undefined): 200 | 401 {
    if (app === undefined || !this.isOpen(app)) return 401;
    if (app.owner !== who && app.explicit !== who) return 401;
    const access = this.access[who]?.get(app);
    if (access?.revoked) return 401;
    if (access === undefined) this.access[who]?.set(app, { source: 'login', revoked: false });
    return 200;
  }

  administer(app: ModelApp | undefined, flags: Flags): 200 | 404 {
    if (app === undefined || app.removed) return 404;
    const keyChanges = flags.explicit !== undefined && flags.explicit !== app.explicit;
    Object.assign(app, flags);
    if (!this.isOpen(app)) this.end((session) => session.app === app);
    if (keyChanges) this.end((session) => session.app === app && session.who !== app.owner);
    return 200;
  }

  remove(who: number, app: ModelApp | undefined): 200 | 404 {
    if (app === undefined || app.removed || app.owner !== who) return 404;
    app.removed = true;
    this.end((session) => session.app === app);
    for (const access of this.access) access.delete(app);
    return 200;
  }

  revoke(who: number, app: ModelApp | undefined): 200 | 404 {
    const access = app === undefined ? undefined : this.access[who]?.get(app);
    if (access === undefined || access.revoked) return 404;
    access.revoked = true;
    this.end((session) => session.app === app && session.who === who);
    return 200;
  }

  grant(who: number, app: ModelApp | undefined): 200 | 404 {
    if (app === undefined || app.removed || (app.owner !== who && !this.isOpen(app))) return 404;
    this.access[who]?.set(app, { source: app.owner === who ? 'registration' : 'consent', revoked: false });
    return 200;
  }
}

/** The gateway on one side, the model on the other. */
class Run {
  readonly model = new Model();
  readonly #fixture: AdminFixture;
  readonly #people: readonly Account[];
  readonly #keys: readonly Key[];

  constructor(fixture: AdminFixture, people: readonly Account[], keys: readonly Key[]) {
    this.#fixture = fixture;
    this.#people = people;
    this.#keys = keys;
  }

  async step(step: Step): Promise<void> {
    await this.#fixture.actors.settle();
    if (step.do === 'restart') await this.#fixture.actors.restart();
    else if (step.do === 'upsert') await this.#upsert(step);
    else await this.#other(step);
    await this.#compare(JSON.stringify(step));
  }

  async #upsert(step: Extract<Step, { do: 'upsert' }>): Promise<void> {
    const { do: _do, who, app: named, ...patch } = step;
    const target = this.model.target(step);
    const id = named === undefined ? undefined : (this.model.at(named)?.id ?? '1');
    const body = { ...patch, ...(id === undefined ? {} : { id }) };
    const answer = await this.#send(who, 'upsert_usr_app', body);
    expect('upsert', answer.status, typeof target === 'number' ? target : 200);
    if (typeof target === 'number') return;
    const result = answer.result as { id: string; apiKey?: string };
    expect('the key is shown', result.apiKey !== undefined, target === 'new');
    if (target !== 'new') {
      Object.assign(target, patch);
      expect('id', result.id, target.id);
      return;
    }
    const flags = { approved: false, mcpEnabled: false, disabled: false, explicit: null };
    const { name = '', url = '', netTypes = [] } = patch;
    const fresh = { id: result.id, owner: who, name, url, netTypes, ...flags, removed: false, keys: 1 };
    this.model.apps.push(fresh);
    this.model.access[who]?.set(fresh, { source: 'registration', revoked: false });
  }

  async #other(step: Exclude<Step, { do: 'upsert' | 'restart' }>): Promise<void> {
    const app = this.model.at(step.app);
    const id = app?.id ?? '1';
    if (step.do === 'administer') {
      const { explicit, ...flags } = step.flags;
      const mcpPublicKey = explicit === null ? null : this.#keys[explicit ?? 0]?.publicKey;
      const body = { appId: id, ...flags, ...(explicit === undefined ? {} : { mcpPublicKey }) };
      const { status } = await this.#fixture.change('apps/update', body);
      expect('administer', status, this.model.administer(app, step.flags));
    } else if (step.do === 'login') {
      const headers = { 'X-PublicKey': this.#keys[step.who]?.publicKey ?? '', 'X-App-Id': id };
      const { status, result } = await this.#fixture.mcpLogin(headers);
      expect('login', status, this.model.login(step.who, app));
      if (status !== 200 || app === undefined) return;
      const { sessionId: token } = result as { sessionId: string };
      this.model.sessions.push({ token, app, who: step.who, live: true });
    } else if (step.do === 'rotate' || step.do === 'finish') {
      const finish = step.do === 'finish';
      const { status, result } = await this.#send(step.who, 'rotate_key', { id, finish });
      const own = app !== undefined && !app.removed && app.owner === step.who;
      expect('rotate', status, own ? 200 : 404);
      if (!own) return;
      app.keys = finish ? 1 : 2;
      expect('a key is shown', (result as { apiKey?: string }).apiKey !== undefined, !finish);
    } else if (step.do === 'remove') {
      const { status } = await this.#send(step.who, 'remove', { id });
      expect('remove', status, this.model.remove(step.who, app));
    } else {
      const { status } = await this.#send(step.who, `${step.do}_access`, { appId: id });
      expect(step.do, status, this.model[step.do](step.who, app));
    }
  }

  /** Everything that can be seen from outside. Nothing has settled: what a step ended is over at once. */
  async #compare(note: string): Promise<void> {
    const { get, actors } = this.#fixture;
    const gate = createSessionLookup({
      actors: actors.system,
      clock: actors.clock.read,
      adminPublicKeys: new Set(),
      onTouchFailed: () => undefined,
    });
    const client = { address: '', userAgent: '' };
    for (const { token, live, app, who } of this.model.sessions) {
      const entered = gate.authenticate(token, 'mcp', undefined, client);
      expect(`${note}: a session of ${app.name} for ${who}`, entered !== undefined, live);
      if (entered !== undefined) expect('acts for', entered.session.userId, this.#people[who]?.userId);
    }
    for (const [index, { sid }] of this.#people.entries()) {
      const listed = (await get('/auth/v1/app/list', cookie(sid))).result as Record<string, unknown>[];
      const shown = listed.map(
        ({ id, name, url, netTypes, approved, mcpEnabled, disabled, mcpPublicKey, keys }) => {
          const owner = this.#keys.findIndex(({ publicKey }) => publicKey === mcpPublicKey);
          const explicit = owner < 0 ? null : owner;
          return {
            id,
            name,
            url,
            netTypes,
            approved,
            mcpEnabled,
            disabled,
            explicit,
            keys: (keys as unknown[]).length,
          };
        },
      );
      const expected = this.model.of(index).map(({ owner: _owner, removed: _removed, ...rest }) => rest);
      expect(`${note}: applications`, sorted(shown), sorted(expected));
      const access = (await get('/auth/v1/app/access', cookie(sid))).result as Record<string, unknown>[];
      const granted = [...(this.model.access[index] ?? [])].filter(([, { revoked }]) => !revoked);
      expect(
        `${note}: access`,
        sorted(access.map(({ appId, source }) => ({ appId, source }))),
        sorted(granted.map(([{ id: appId }, { source }]) => ({ appId, source }))),
      );
    }
  }

  /** Checks that closed sessions leave nothing behind: no name in the index without a live session. */
  async finish(): Promise<void> {
    const { actors } = this.#fixture;
    await actors.settle();
    const live = this.model.sessions.filter((session) => session.live).length;
    expect('sessions in the index', actors.system.count('sessionHash'), live);
    expect(
      'applications in the index',
      actors.system.count('appId'),
      this.model.of(0).length + this.model.of(1).length,
    );
  }

  #send(who: number, path: string, body: object): Promise<Answer> {
    return this.#fixture.post(`/auth/v1/app/${path}`, body, cookie(this.#people[who]?.sid));
  }
}

function sorted(rows: object[]): string[] {
  return rows.map((row) => JSON.stringify(Object.entries(row).sort())).sort();
}

function expect(note: string, actual: unknown, wanted: unknown): void {
  if (JSON.stringify(actual) === JSON.stringify(wanted)) return;
  throw new Error(`${note}: ${JSON.stringify(actual)} instead of ${JSON.stringify(wanted)}`);
}

// covers R76 S165
t.test(
  'applications: any history of registrations, approvals, logins and restarts agrees with the model',
  async (t) => {
    let logins = 0;
    await fc.assert(
      fc.asyncProperty(steps, async (history) => {
        const fixture = await startAdmin();
        try {
          const people = [fixture.owner, await fixture.signUp()];
          const keys = [makeKey(), makeKey()];
          for (const [index, key] of keys.entries()) {
            const person = people[index];
            if (person !== undefined) await fixture.allowAgent(person, key);
          }
          const run = new Run(fixture, people, keys);
          for (const step of history) await run.step(step);
          await run.finish();
          logins += run.model.sessions.length;
        } finally {
          await fixture.stop();
        }
      }),
      // Eight times as many as the bound below counts: few histories log anyone in.
      runs(RUNS * 8),
    );
    t.ok(logins > Math.floor(count(RUNS) / 4), `${logins} logins succeeded`);
  },
);
