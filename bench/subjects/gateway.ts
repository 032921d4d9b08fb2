/**
 * The gateway under load: started with raised limits, or the one that `--target` names, and the accounts that take
 * part, made through the public API like anybody's.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expectOk, mcpLogin, type Person, signUp, updateKey } from '../../kit/agent.ts';
import { launch } from '../../kit/launch.ts';
import { METER } from '../measure/allocations.ts';
import type { Bench } from '../scenario.ts';
import { type Build, knownTo } from './baseline.ts';
import { cleanupNotes, removeKeys, retryWhenLimited } from './target-accounts.ts';

/** The most that the settings take: the limiter counts every request, and none of them is over. */
const RAISED_MAX = 1_000_000;
export const RAISED = {
  ApiRPSLimit: RAISED_MAX,
  PubKeyApiRPSLimit: RAISED_MAX,
  SessionApiRPSLimit: RAISED_MAX,
  McpApiRPSLimit: RAISED_MAX,
  IpRPSLimit: RAISED_MAX,
  UnknownKeyFailuresPerMinute: RAISED_MAX,
  UserApiRPSLimit: RAISED_MAX,
  SignUpsPerNetworkPerDay: 0,
  ConnectionsPerNetworkPercent: 0,
};
/** Sign-ups under way at once. */
const SIGN_UPS = 16;

export interface GatewayUnderLoad {
  readonly name: string;
  readonly url: string;
  /** The internal listener; undefined of a target elsewhere. */
  readonly internal?: string;
  /** Empty for a target elsewhere. */
  readonly pids: readonly number[];
  /** Before the scenario is over, which does it by itself; absent of a target. */
  stop?(): Promise<unknown>;
}

export interface GatewayOptions {
  /** Added to what every bench configures. */
  readonly configuration?: object;
  /** Added to what every bench raises. */
  readonly settings?: object;
  /** Brings the modules. */
  readonly sandbox?: true;
  /** A data folder that is there already; the caller removes it. */
  readonly dataPath?: string;
  /** This checkout's unless given. */
  readonly build?: Build;
}

export async function gatewayUnderLoad(
  bench: Bench,
  modules: object = {},
  more: GatewayOptions = {},
): Promise<GatewayUnderLoad> {
  const { target, profileFolder } = bench.options;
  if (target !== undefined) return { name: target, url: target, pids: [] };
  if (profileFolder !== undefined) mkdirSync(profileFolder, { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  bench.onTeardown(async () => rmSync(folder, { recursive: true, force: true }));
  const args = more.sandbox === true ? ['--sandbox'] : [];
  const configuration = {
    Modules: modules,
    Settings: { ...RAISED, ...more.settings },
    ...more.configuration,
  };
  const { checkout, suffix } = more.build ?? { suffix: '' };
  const known = checkout === undefined ? undefined : await knownTo(checkout, configuration, args);
  if (known !== undefined && known.leftOut.length > 0) {
    const remark = `The baseline does not take, and was started without: ${known.leftOut.join(', ')}.`;
    if (!bench.remarks.includes(remark)) bench.remarks.push(remark);
  }
  const gateway = await launch({
    logFile: join(folder, 'gatehouse.log'),
    configuration: known?.configuration ?? configuration,
    ...(checkout === undefined ? {} : { checkout }),
    ...(more.dataPath === undefined ? {} : { dataPath: more.dataPath }),
    args,
    nodeArgs: [
      ...METER,
      ...(profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`]),
    ],
  });
  bench.countAllocations(gateway.process);
  bench.onTeardown(() => gateway.stop());
  return {
    name: `gatehouse${suffix}`,
    url: gateway.url,
    internal: gateway.internal,
    pids: [gateway.process.pid ?? 0],
    stop: () => gateway.stop(),
  };
}

/** Accounts with a software key that may log in as agents. Those at a target lose key and sessions afterwards. */
export async function makeAgents(bench: Bench, url: string, count: number): Promise<Person[]> {
  bench.announce(`${count} accounts sign up`);
  const people: Person[] = [];
  const remote = bench.options.target !== undefined;
  if (remote)
    bench.onTeardown(async () => bench.remarks.push(...cleanupNotes(url, await removeKeys(url, people))));
  let started = 0;
  const stream = async () => {
    while (started < count) {
      started += 1;
      const person = await retryWhenLimited(() => signUp(url));
      people.push(person);
      await retryWhenLimited(async () =>
        expectOk('update_key', await updateKey(url, person, { mcpAccess: true })),
      );
    }
  };
  // One at a time where limits of people are on.
  await Promise.all(Array.from({ length: remote ? 1 : SIGN_UPS }, stream));
  return people;
}

/** A verified MCP session of a person: the bearer of /mcp. */
export async function sessionOf(url: string, person: Person): Promise<string> {
  const login = async () => expectOk('mcp_login', await mcpLogin(url, person.key, Date.now()));
  const { json } = await retryWhenLimited(login);
  return String(json['result']?.['sessionId']);
}
