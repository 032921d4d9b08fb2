/** The administrator of a faulty cluster: changes settings and roles, and reads them back at once at a random node. */
import { cookieOf, type SoftwareKey, signText } from '../../agent.ts';
import type { NodeProcess } from '../nodes.ts';
import type { AccountTools } from './account.ts';
import { AccountClient } from './account.ts';

const SETTINGS_PATH = '/ProxyAdmin/api/settings';
const STAFF_PATH = '/ProxyAdmin/api/staff';
const SETTING = 'EventDays';
const SETTING_MAX = 365;
const WHO = 'administrator';

export class Administrator {
  readonly #tools: AccountTools;
  readonly #cookie: string;
  /** An account whose role changes. */
  readonly #member: AccountClient;
  #value: number | undefined;
  #hasRole = false;

  /** `key`: of `Admin.publicKeys`. */
  static async create(tools: AccountTools, key: SoftwareKey): Promise<Administrator> {
    const { calls, random } = tools;
    const cookie = await calls.until(WHO, random, async (node) => {
      const options = await calls.call(WHO, node, { path: '/auth/v1/register_options' });
      const challenge = options?.json['result'] as unknown as { challengeId: string; signPrefix: string };
      if (options === undefined) return undefined;
      const { challengeId, signPrefix } = challenge;
      const { publicKey } = key;
      const body = { challengeId, publicKey, code: signText(key, signPrefix + publicKey) };
      const answer = await calls.call(WHO, node, { path: '/auth/v1/keys/register_key', body });
      return answer?.status === 200 ? cookieOf(answer) : undefined;
    });
    return new Administrator(tools, cookie, await AccountClient.create(tools));
  }

  private constructor(tools: AccountTools, cookie: string, member: AccountClient) {
    this.#tools = tools;
    this.#cookie = cookie;
    this.#member = member;
  }

  async step(): Promise<void> {
    await (this.#tools.random() < 0.5 ? this.#changeSetting() : this.#changeRole());
  }

  /** The settings and roles that every node must have. */
  async verify(node: NodeProcess): Promise<void> {
    await this.#readSetting(node);
    await this.#readRole(node);
  }

  async #changeSetting(): Promise<void> {
    const { random } = this.#tools;
    const value = 1 + Math.floor(random() * SETTING_MAX);
    await this.#write(SETTINGS_PATH, { name: SETTING, value });
    this.#value = value;
    await this.#readSetting(this.#node());
  }

  async #changeRole(): Promise<void> {
    const role = this.#hasRole ? null : 'viewer';
    await this.#write(STAFF_PATH, { userId: this.#member.userId, role });
    this.#hasRole = role !== null;
    await this.#readRole(this.#node());
  }

  async #write(path: string, body: object): Promise<void> {
    const { calls, random } = this.#tools;
    await calls.write(WHO, random, { path, headers: { Cookie: this.#cookie }, body });
  }

  async #readSetting(node: NodeProcess): Promise<void> {
    if (this.#value === undefined) return;
    const asked = { path: SETTINGS_PATH, headers: { Cookie: this.#cookie } };
    await this.#tools.calls.readBack(WHO, node, asked, (answer) => {
      if (answer.status !== 200) return 'the administrator is refused';
      const rows = answer.json['result'] as unknown as { name: string; value: number }[];
      const value = rows.find(({ name }) => name === SETTING)?.value;
      return value === this.#value ? undefined : `${SETTING} is ${value}, not ${this.#value}`;
    });
  }

  async #readRole(node: NodeProcess): Promise<void> {
    const asked = { path: STAFF_PATH, headers: { Cookie: this.#member.home.token } };
    await this.#tools.calls.readBack(WHO, node, asked, ({ status }) => {
      if (status === (this.#hasRole ? 200 : 403)) return undefined;
      return this.#hasRole ? 'a role that was given does not count' : 'a role that was taken away counts';
    });
  }

  #node(): NodeProcess {
    const { calls, random } = this.#tools;
    return calls.pick(random);
  }
}
