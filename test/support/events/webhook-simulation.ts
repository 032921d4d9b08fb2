/**
 * Webhooks in a history that a seed makes: events for two applications, receivers that fail, hang and are away, kills at
 * any point. What they have taken in the end is held against the event log.
 */
import { HOUR_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { seededNumbers } from '../actors/actors.ts';
import { createRig, numbersOf, OWNER, type Rig, type RigFault } from './webhooks.ts';

const OTHER_OWNER = '202';
const EVENTS = 60;
const APPS = [
  ['77', OWNER],
  ['78', OTHER_OWNER],
] as const;
const urlOf = (appId: string) => `https://hook${appId}.example/`;

/** Returns the broken promise, or undefined. */
export async function simulateWebhooks(seed: number, fault?: RigFault): Promise<string | undefined> {
  const chance = seededNumbers(seed);
  const rig = await createRig({ seed, ...(fault === undefined ? {} : { fault }) });
  await rig.register('77');
  await rig.register('78', { ownerId: OTHER_OWNER, maxBatch: 1 + Math.floor(chance() * 5) });
  let failing = chance() < 0.5;
  rig.receivers.answer = () => {
    if (chance() < 0.15) failing = !failing;
    if (chance() < 0.1) return 'never';
    return failing ? (chance() < 0.5 ? 503 : { failure: 'unreachable', sent: false }) : 200;
  };
  for (let appended = 0; appended < EVENTS; ) {
    for (let n = Math.floor(chance() * 6); n >= 0; n -= 1) {
      rig.log.append(chance() < 0.3 ? { userId: OTHER_OWNER } : chance() < 0.5 ? { userId: undefined } : {});
      appended += 1;
    }
    const turns = Math.floor(chance() * 25);
    for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    if (chance() < 0.4) await rig.restart();
    if (chance() < 0.5) await rig.actors.advance(Math.floor(chance() * 30) * SECOND_MS);
  }
  rig.receivers.answer = () => 200;
  await rig.restart();
  await rig.actors.advance(3 * HOUR_MS);
  for (const [appId, ownerId] of APPS) {
    const broken = await brokenOf(rig, appId, ownerId);
    if (broken !== undefined) return `application ${appId}: ${broken}`;
  }
  const bugs = [...rig.faults, ...rig.actors.bugs];
  return bugs.length > 0 ? `bugs: ${bugs.map(String)}` : undefined;
}

async function brokenOf(rig: Rig, appId: string, ownerId: string): Promise<string | undefined> {
  const wanted = rig.log.page(0, 1_000).filter(({ userId }) => userId === undefined || userId === ownerId);
  const bodies = new Map<string, string>();
  const taken: number[] = [];
  for (const { url, webhookId, body } of rig.receivers.taken) {
    if (url !== urlOf(appId)) continue;
    const known = bodies.get(webhookId);
    if (known === undefined) taken.push(...numbersOf(body));
    else if (known !== body) return 'one id, two bodies';
    bodies.set(webhookId, body);
  }
  const expected = wanted.map(({ sequence }) => sequence);
  if (String(taken) !== String(expected)) return `taken ${taken} of ${expected}`;
  const { lastTick } = await rig.view(appId);
  const last = wanted.at(-1)?.tick;
  return lastTick === last ? undefined : `last_tick ${lastTick} instead of ${last}`;
}
