/** The administrator of a faulty cluster: changes settings and roles, and reads them back at once at a random node. */
import { type Answer, cookieOf, type SoftwareKey, signText } from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import { FRESH_LOGIN_MS } from '../../../src/domain/sessions.ts';
import type { AccountTools } from './account.ts';
import { AccountClient } from './account.ts';

const SETTINGS_PATH = '/ProxyAdmin/api/settings';
const STAFF_PATH = '/ProxyAdmin/api/staff';
/** Each administrator changes a setting of its own, and all of them change the shared one. */
const OWN_SETTINGS = ['EventDays', 'AuditDays'] as const;
const SHARED_SETTING = 'DraftsPerUser';
const VALUE_MAX = 365;
const OWN_CHANGES = 0.4;
const SHARED_CHANGES = 0.3;
/** For one administrator each. */
export const ADMINISTRATORS = OWN_SETTINGS.length;

/** Changes need a fresh login; a fault in its last minutes must not make it too old. */
const LOGIN_AGE_MAX_MS = FRESH_LOGIN_MS / 2;
const SIGN_UP = { options: '/auth/v1/register_options', path: '/auth/v1/keys/register_key' };
const LOG_IN = { options: '/auth/v1/login_options', path: '/auth/v1/login' };

interface OpenedSession {
  readonly cookie: string;
  /** On the clock of `performance.now()`. */
  readonly openedMs: number;
}

interface AdministratorParts {
  readonly who: string;
  readonly key: SoftwareKey;
  readonly setting: string;
  readonly session: OpenedSession;
  readonly member: AccountClient;
}

export class Administrator {
  readonly #who: string;
  readonly #setting: string;
  readonly #tools: AccountTools;
  readonly #key: SoftwareKey;
  #session: OpenedSession;
  /** An account whose role changes. */
  readonly #member: AccountClient;
  #value: number | undefined;
  #hasRole = false;

  /** `key`: of `Admin.publicKeys`. `index` from 0. */
  static async create(tools: AccountTools, key: SoftwareKey, index: number): Promise<Administrator> {
    const who = `administrator ${index}`;
    const session = await openSession(tools, who, key, SIGN_UP);
    const setting = OWN_SETTINGS[index % ADMINISTRATORS] ?? OWN_SETTINGS[0];
    return new Administrator(tools, {
      who,
      key,
      setting,
      session,
      member: await AccountClient.create(tools),
    });
  }

  private constructor(tools: AccountTools, { who, key, setting, session, member }: AdministratorParts) {
    this.#who = who;
    this.#key = key;
    this.#setting = setting;
    this.#tools = tools;
    this.#session = session;
    this.#member = member;
  }

  async step(): Promise<void> {
    const ticket = this.#tools.random();
    if (ticket < OWN_CHANGES) await this.#changeSetting();
    else if (ticket < OWN_CHANGES + SHARED_CHANGES) await this.#writeSetting(SHARED_SETTING);
    else await this.#changeRole();
  }

  /** The settings and roles that every node must have. */
  async verify(node: NodeProcess): Promise<void> {
    await this.#readSetting(node);
    await this.#readRole(node);
  }

  /** The value of the setting that all administrators change; undefined where the node gives no verdict. */
  async readShared(node: NodeProcess): Promise<number | undefined> {
    const asked = { path: SETTINGS_PATH, headers: { Cookie: this.#session.cookie } };
    const answer = await this.#tools.calls.call(this.#who, node, asked);
    return answer === undefined ? undefined : settingIn(answer, SHARED_SETTING);
  }

  async #changeSetting(): Promise<void> {
    this.#value = await this.#writeSetting(this.#setting);
    await this.#readSetting(this.#node());
  }

  async #writeSetting(name: string): Promise<number> {
    const value = 1 + Math.floor(this.#tools.random() * VALUE_MAX);
    await this.#write(SETTINGS_PATH, { name, value });
    return value;
  }

  async #changeRole(): Promise<void> {
    const role = this.#hasRole ? null : 'viewer';
    await this.#write(STAFF_PATH, { userId: this.#member.userId, role });
    this.#hasRole = role !== null;
    await this.#readRole(this.#node());
  }

  async #write(path: string, body: object): Promise<void> {
    const { calls, random } = this.#tools;
    if (performance.now() - this.#session.openedMs > LOGIN_AGE_MAX_MS)
      this.#session = await openSession(this.#tools, this.#who, this.#key, LOG_IN);
    await calls.write(this.#who, random, { path, headers: { Cookie: this.#session.cookie }, body });
  }

  async #readSetting(node: NodeProcess): Promise<void> {
    if (this.#value === undefined) return;
    const asked = { path: SETTINGS_PATH, headers: { Cookie: this.#session.cookie } };
    await this.#tools.calls.readBack(this.#who, node, asked, (answer) => {
      if (answer.status !== 200) return 'the administrator is refused';
      const value = settingIn(answer, this.#setting);
      return value === this.#value ? undefined : `${this.#setting} is ${value}, not ${this.#value}`;
    });
  }

  async #readRole(node: NodeProcess): Promise<void> {
    const asked = { path: STAFF_PATH, headers: { Cookie: this.#member.home.token } };
    await this.#tools.calls.readBack(this.#who, node, asked, ({ status }) => {
      if (status === (this.#hasRole ? 200 : 403)) return undefined;
      return this.#hasRole ? 'a role that was given does not count' : 'a role that was taken away counts';
    });
  }

  #node(): NodeProcess {
    const { calls, random } = this.#tools;
    return calls.pick(random);
  }
}

/** Asks for a challenge and answers it, until a node gives a session. */
async function openSession(
  { calls, random }: AccountTools,
  who: string,
  key: SoftwareKey,
  { options, path }: typeof SIGN_UP,
): Promise<OpenedSession> {
  const openedMs = performance.now();
  const cookie = await calls.until(who, random, async (node) => {
    const offered = await calls.call(who, node, { path: options });
    if (offered?.status !== 200) return undefined;
    const { challengeId, signPrefix } = offered.json['result'] as unknown as {
      challengeId: string;
      signPrefix: string;
    };
    const { publicKey } = key;
    const body = { challengeId, publicKey, code: signText(key, signPrefix + publicKey) };
    const answer = await calls.call(who, node, { path, body });
    return answer?.status === 200 ? cookieOf(answer) : undefined;
  });
  return { cookie, openedMs };
}

function settingIn({ json }: Answer, setting: string): number | undefined {
  const rows = json['result'] as unknown as { name: string; value: number }[];
  return rows.find(({ name }) => name === setting)?.value;
}
