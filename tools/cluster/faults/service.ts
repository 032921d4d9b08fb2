/** Accounts of all parts of a cluster that are written until each answers: how long a fault kept the service away. */
import { setTimeout as wait } from 'node:timers/promises';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import { AccountClient, type AccountTools } from './account.ts';
import { BrokenPromise, GIVE_UP_MS } from './calls.ts';

/** A further attempt begins although those before have no answer. */
const ATTEMPT_MS = 150;
const ATTEMPTS_MAX = 3;
const POLL_MS = 50;
const WHO = 'service';

export class ServiceProbe {
  readonly #tools: AccountTools;
  readonly #accounts: readonly AccountClient[];
  #count = 0;

  /** Accounts have chance ids, so every node owns some of them. */
  static async create(tools: AccountTools, accounts: number): Promise<ServiceProbe> {
    const signedUp = Array.from({ length: accounts }, () => AccountClient.create(tools));
    return new ServiceProbe(tools, await Promise.all(signedUp));
  }

  private constructor(tools: AccountTools, accounts: readonly AccountClient[]) {
    this.#tools = tools;
    this.#accounts = accounts;
  }

  /** Milliseconds since `sinceMs` when each account has been written through one of the nodes. */
  async back(sinceMs: number, nodes: readonly NodeProcess[]): Promise<number> {
    await Promise.all(this.#accounts.map((account) => this.#written(account, nodes)));
    return Math.round(performance.now() - sinceMs);
  }

  async serves(node: NodeProcess): Promise<void> {
    const endMs = performance.now() + GIVE_UP_MS;
    while (performance.now() < endMs) {
      const answer = await this.#tools.calls.call(WHO, node, { path: '/health' });
      if (answer?.status === 200) return;
      await wait(POLL_MS);
    }
    throw new BrokenPromise(WHO, `${node.name} does not serve ${GIVE_UP_MS} ms after its fault was over`);
  }

  #written(account: AccountClient, nodes: readonly NodeProcess[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const beganMs = performance.now();
      let attempts = 0;
      const attempt = () => {
        if (attempts >= ATTEMPTS_MAX) return;
        attempts += 1;
        this.#write(account, nodes).then((isWritten) => {
          attempts -= 1;
          if (!isWritten) return;
          clearInterval(timer);
          resolve();
        }, failed);
      };
      const timer = setInterval(() => {
        if (performance.now() - beganMs > GIVE_UP_MS)
          failed(new BrokenPromise(WHO, `the account ${account.userId} cannot be written`));
        else attempt();
      }, ATTEMPT_MS);
      const failed = (error: unknown) => {
        clearInterval(timer);
        reject(error);
      };
      attempt();
    });
  }

  async #write(account: AccountClient, nodes: readonly NodeProcess[]): Promise<boolean> {
    const { calls, random } = this.#tools;
    this.#count += 1;
    const [keyId] = account.keys.keys();
    const answer = await calls.call(WHO, calls.pick(random, nodes), {
      path: '/auth/v1/keys/update_key',
      headers: { Cookie: account.home.token },
      body: { keyId, cardDavAccess: this.#count % 2 === 0 },
    });
    if (answer !== undefined && answer.status !== 200)
      throw new BrokenPromise(WHO, `update_key: ${answer.status} ${answer.text}`);
    return answer !== undefined;
  }
}
