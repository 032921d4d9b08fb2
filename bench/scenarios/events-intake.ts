/**
 * Events pushed to the internal listener, each durable before its answer and then moved into the log in order: in
 * batches, and one by one. The rate is events a second; processor time and memory are the whole gateway's, the later
 * release included as far as it falls into the round.
 */

import type { Subject } from '../measure/measure.ts';
import { type Bench, rawRequest, type Scenario } from '../scenario.ts';
import { gatewayUnderLoad } from '../subjects/gateway.ts';

const KEY = 'bench-module-key-0000';
const BATCHES = [100, 1];
/** More than a round uses up: the same event again would be dropped as a duplicate, which is cheaper. */
const EVENTS_PER_SECOND_MAX = 45_000;
const REQUESTS_MAX = 120_000;
/** Batches come over an eighth of the connections: more of them would wait longer for one answer than a round takes. */
const FEWER = 8;

export const eventsIntake: Scenario = {
  name: 'events-intake',
  summary: 'events that modules push, durable before the answer, in batches of 100 and one by one',
  unit: 'events',
  noTarget: 'it pushes events with a module key of its own gateway',
  // Requests wait for the disk together.
  defaults: { durationMs: 300 },
  async run(bench) {
    const modules = { wallet: { url: 'http://127.0.0.1:9', key: KEY } };
    const gateway = await gatewayUnderLoad(bench, modules);
    const internal = gateway.internal ?? '';
    let ticks = 0;
    const batchOf = (size: number) => {
      const events = Array.from({ length: size }, () => eventOf(++ticks));
      const url = `${internal}/internal/v1/events`;
      return rawRequest('POST', url, { 'X-Module-Key': KEY }, `{"events":[${events.join(',')}]}`);
    };
    const subjects = BATCHES.map((size) =>
      subjectOf(bench, gateway.pids, internal, size, () => batchOf(size)),
    );
    const comparison = await bench.compare(subjects);
    const health = (await (await fetch(`${internal}/health`)).json()) as {
      parts: { events: Record<string, number> };
    };
    const { accepted, duplicates, late, overloaded, rows } = health.parts.events;
    return {
      comparison,
      notes: [
        `In all ${accepted} accepted, ${rows} in the log, ${duplicates} duplicates, ${late} late, ${overloaded} requests refused because too many waited.`,
        'p50 and p99 are those of a request, whatever it carries.',
      ],
    };
  },
};

function subjectOf(
  bench: Bench,
  pids: readonly number[],
  internal: string,
  size: number,
  request: () => string,
): Subject {
  const { connections, warmupMs, durationMs } = bench.options;
  const name = size === 1 ? 'one event a request' : `${size} events a request`;
  let forMs = warmupMs;
  const subject = bench.subject(name, pids, () => {
    const wanted = Math.ceil((EVENTS_PER_SECOND_MAX * forMs) / 1_000 / size);
    // The warm-up is one round, whatever it takes; the others follow.
    forMs = durationMs;
    const requests = Array.from({ length: Math.min(wanted, REQUESTS_MAX) }, request);
    const streams = Math.ceil(connections / (size === 1 ? 1 : FEWER));
    return { url: internal, requests, expect: '"accepted"', connections: streams };
  });
  return {
    ...subject,
    async round() {
      const sample = await subject.round();
      const answers = Number(sample.details['answers']) * size;
      return { ratePerSecond: sample.ratePerSecond * size, details: { ...sample.details, answers } };
    },
  };
}

/** A wallet event of spec 2.6, some 330 bytes. */
function eventOf(tick: number): string {
  const data =
    `{"id":"${tick}","tick":"${tick}","currency":"DEMO","txType":2,"state":2,"amount":12.50,"fee":0.00,` +
    `"externalId":"${tick}","appId":"0","partnerInfo":"1862650937081856001","tag":"lunch","dateTime":"2026-11-20T22:17:59.107Z"}`;
  return `{"module":"wallet","tick":"${tick}","type":"TransferCompleted","crmId":"${tick % 1_000}","data":${data}}`;
}
