/**
 * One-time codes against a model: whatever is issued, entered, waited for or crashed, a code works once, in time, while
 * it is the newest and was not tried too often; and the caps hold for addresses, askers and days.
 */
import fc from 'fast-check';
import t from 'tap';
import { anyCodePoint } from '../../../kit/code-points.ts';
import { ONE_TIME_CODES_ID } from '../../../src/actors/codes/code-messages.ts';
import {
  type CodeProtocol,
  type IssuedCode,
  oneTimeCodes,
} from '../../../src/actors/codes/one-time-codes.ts';
import { CODE_DIGITS, CODE_TRIES_MAX } from '../../../src/actors/codes/state.ts';
import { KINDS } from '../../../src/actors/kinds.ts';
import type { AnyKind } from '../../../src/actors/runtime/actor.ts';
import type { CodeMessage, PortResult } from '../../../src/actors/runtime/ports.ts';
import type { Asked, TypeIn } from '../../../src/actors/runtime/protocol.ts';
import { type Contact, parseEmail, parsePhone } from '../../../src/domain/contacts.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { networksOf } from '../../../src/domain/limits/networks.ts';
import { LiveSettings, type SettingName } from '../../../src/domain/settings/settings.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { createTestActors, type TestActors } from '../../support/actors/actors.ts';
import { type ChatFixture, startChat, wrongCode } from '../../support/codes.ts';
import { runs } from '../../support/depth.ts';
import { step } from '../../support/steps.ts';

const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };
const NO_CAPS = { OneTimeCodesPerContactHour: 1000, OneTimeCodesPerIpHour: 10_000 };

interface CodesFixture {
  readonly actors: TestActors;
  readonly chat: ChatFixture;
  /** The id of the code, or the row of the refusal with its wait. */
  issue(contact: Contact, network?: string, known?: boolean): Promise<IssuedCode | string>;
  /** `right`, or the row of the refusal. */
  redeem(id: number, code: string): Promise<string>;
}

function startCodes(
  values: Partial<Record<SettingName, number>> = {},
  kinds: readonly AnyKind[] = KINDS,
): CodesFixture {
  const chat = startChat();
  const workers = { run: async () => ({ ok: false, error: 'InternalError' }) as const };
  const settings = new LiveSettings(values);
  const actors = createTestActors({ kinds, ports: { workers, codes: chat.port }, settings });
  const ask = async <T extends TypeIn<CodeProtocol['replies']>>(command: Asked<CodeProtocol, T>) => {
    try {
      const reply = await actors.system.ask<CodeProtocol, T>(oneTimeCodes, ONE_TIME_CODES_ID, command);
      await actors.settle();
      return reply;
    } catch (error) {
      if (error instanceof GatewayError) return `${error.row} ${error.retryAfterSeconds ?? ''}`.trim();
      throw error;
    }
  };
  return {
    actors,
    chat,
    issue: (contact, network = ORIGIN.ip, known = false) =>
      ask({
        type: 'issueCode',
        ...contact,
        networks: networksOf(network),
        known,
        sessionId: null,
        holder: null,
        origin: ORIGIN,
      }),
    async redeem(id, code) {
      const reply = await ask({
        type: 'redeemCode',
        id,
        code,
        sessionId: null,
        origin: ORIGIN,
      });
      if (typeof reply === 'string') return reply;
      return reply.right ? 'right' : reply.row;
    },
  };
}

function phone(number: number): Contact {
  const contact = parsePhone(`+4917${String(number).padStart(8, '0')}`);
  if (contact === undefined) throw new Error('no phone number');
  return contact;
}

interface Known {
  readonly id: number;
  readonly code: string;
  readonly bornMs: number;
  /** Contact and class. */
  readonly of: string;
  tries: number;
  dead: boolean;
}

const STEP = fc.oneof(
  step(3, 'issue', { contact: fc.nat(2), known: fc.boolean() }),
  step(6, 'enter', { which: fc.nat(2), right: fc.constantFrom(false, false, false, true) }),
  step(2, 'wait', { seconds: fc.constantFrom(1, 59, 60, 240, 299, 300) }),
  step(1, 'restart'),
);

/** The result of this code in the reference. */
function expected(known: Known, right: boolean, nowMs: number): string {
  if (known.dead || known.tries >= 5 || nowMs - known.bornMs >= 300 * SECOND_MS) return 'ChallengeExpired';
  known.tries += 1;
  if (!right) return known.tries >= 5 ? 'ChallengeExpired' : 'InvalidCode';
  known.dead = true;
  return 'right';
}

// covers R60 S78
t.test('codes: any history of codes, tries, waits and restarts ends as in the reference', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 60, size: 'max' }), async (steps) => {
      const oneTime = startCodes(NO_CAPS);
      const codes: Known[] = [];
      const lastMs = new Map<string, number>();
      for (const step of steps) {
        const { nowMs } = oneTime.actors.clock;
        if (step.do === 'restart') await oneTime.actors.restart();
        else if (step.do === 'wait') await oneTime.actors.advance(step.seconds * SECOND_MS);
        else if (step.do === 'issue') {
          const of = `${step.contact} ${step.known}`;
          const issued = await oneTime.issue(phone(step.contact), undefined, step.known);
          const waitMs = (lastMs.get(of) ?? nowMs - MINUTE_MS) + MINUTE_MS - nowMs;
          if (waitMs > 0) {
            if (issued !== `AccessRateLimit ${Math.ceil(waitMs / SECOND_MS)}`)
              throw new Error(`issued within ${waitMs} ms: ${JSON.stringify(issued)}`);
            continue;
          }
          if (typeof issued === 'string') throw new Error(`not issued: ${issued}`);
          for (const code of codes) if (code.of === of) code.dead = true;
          const { code } = oneTime.chat.last();
          codes.push({ id: issued.id, code, bornMs: nowMs, of, tries: 0, dead: false });
          lastMs.set(of, nowMs);
        } else {
          const known = codes.at(-1 - step.which);
          if (known === undefined) continue;
          const answer = await oneTime.redeem(known.id, step.right ? known.code : wrongCode(known.code));
          const wanted = expected(known, step.right, nowMs);
          if (answer !== wanted) throw new Error(`${answer} instead of ${wanted}`);
        }
      }
      await oneTime.actors.system.close();
      return oneTime.actors.bugs.length === 0;
    }),
    runs(150),
  );
  t.pass('150 histories');
});

/** Issues codes as the version before did: their records do not say how many digits they have. */
const formerCodes: typeof oneTimeCodes = {
  ...oneTimeCodes,
  decide(state, command, turn) {
    const outcome = oneTimeCodes.decide(state, command, turn);
    if (command.type !== 'issueCode') return outcome;
    return JSON.parse(JSON.stringify(outcome, (name, value) => (name === 'digits' ? undefined : value)));
  },
};

// covers S78
t.test('codes: a code of six digits from an earlier version is sent and good until it expires', async (t) => {
  const kinds = KINDS.map((kind) => (kind.kind === oneTimeCodes.kind ? formerCodes : kind));
  const { actors, chat, issue, redeem } = startCodes({}, kinds);
  chat.mode = 'down';
  const issued = await issue(phone(1));
  if (typeof issued === 'string') throw new Error(issued);
  await actors.restart();
  chat.mode = 'up';
  await actors.advance(MINUTE_MS);
  const { code } = chat.last();
  t.match(code, /^[0-9]{6}$/);
  t.equal(await redeem(issued.id, `00${code}`), 'InvalidInput');
  t.equal(await redeem(issued.id, code), 'right');
});

// covers S78
t.test('codes: guesses at all codes of a year find fewer than one account in five years', async (t) => {
  const triesPerYear = new LiveSettings().get('OneTimeCodesPerDay') * 365 * CODE_TRIES_MAX;
  const found = triesPerYear / 10 ** CODE_DIGITS;
  t.ok(found < 0.2, `${found} a year`);
});

// covers S78
t.test('codes: six digits of eight are neither right nor a try', async (t) => {
  const { chat, issue, redeem } = startCodes();
  const issued = await issue(phone(1));
  if (typeof issued === 'string') throw new Error(issued);
  const { code } = chat.last();
  t.match(code, /^[0-9]{8}$/);
  for (const part of [0, 1, 2, 0, 1, 2].map((from) => code.slice(from, from + 6)))
    t.equal(await redeem(issued.id, part), 'InvalidInput');
  t.equal(await redeem(issued.id, code), 'right');
});

// covers R60
t.test(
  'caps: one network that asks for ten thousand addresses gets ten codes an hour and leaves bounded state',
  async (t) => {
    const { issue, actors, chat } = startCodes();
    let issued = 0;
    let refused = 0;
    for (let number = 0; number < 10_000; number += 1) {
      if (typeof (await issue(phone(number))) === 'string') refused += 1;
      else issued += 1;
    }
    t.same([issued, refused, chat.outbox.length], [10, 9_990, 10]);
    const { system } = actors;
    const stored = JSON.stringify(system.administration.export('codeDesk', ONE_TIME_CODES_ID));
    t.ok(stored.length < 20_000, `${stored.length} characters`);
    t.ok(system.administration.auditPage(0, 100_000).length <= 10, 'a refusal writes nothing');
    t.equal(
      await issue(phone(1), '192.0.2.2').then((reply) => typeof reply),
      'string',
      'its own wait continues',
    );
    t.equal(await issue(phone(77_777), '192.0.2.2').then((reply) => typeof reply), 'object', 'others may');
    await actors.advance(HOUR_MS);
    t.equal(await issue(phone(88_888)).then((reply) => typeof reply), 'object');
  },
);

// covers R60
t.test(
  'caps: requests of unknown networks for a number leave the codes of its owner, and vice versa',
  async (t) => {
    const oneTime = startCodes();
    const number = phone(1);
    for (let sent = 0; sent < 5; sent += 1) {
      t.type(await oneTime.issue(number, `198.51.100.${sent}`), 'object');
      await oneTime.actors.advance(MINUTE_MS);
    }
    t.match(
      await oneTime.issue(number, '198.51.100.9'),
      /^AccessRateLimit/,
      'the unknown networks have used their share up',
    );
    t.type(await oneTime.issue(number, '192.0.2.7', true), 'object', 'not the share of the person');
    t.equal(await oneTime.issue(number, '192.0.2.7', true), 'AccessRateLimit 60', 'who waits like anybody');
    await oneTime.actors.restart();
    for (let sent = 1; sent < 5; sent += 1) {
      await oneTime.actors.advance(MINUTE_MS);
      t.type(await oneTime.issue(number, '192.0.2.7', true), 'object');
    }
    await oneTime.actors.advance(MINUTE_MS);
    t.match(await oneTime.issue(number, '192.0.2.7', true), /^AccessRateLimit/, 'and is bounded, too');
  },
);

// covers S76
t.test('codes: a code of the other class neither replaces nor uses up a code', async (t) => {
  const oneTime = startCodes();
  const number = phone(1);
  const idOf = async (network: string, known: boolean) => {
    const issued = await oneTime.issue(number, network, known);
    if (typeof issued === 'string') throw new Error(issued);
    return { id: issued.id, code: oneTime.chat.last().code };
  };
  const owners = await idOf('192.0.2.7', true);
  const others = await idOf('198.51.100.1', false);
  for (let tries = 0; tries < 5; tries += 1) await oneTime.redeem(others.id, wrongCode(others.code));
  t.equal(await oneTime.redeem(others.id, others.code), 'ChallengeExpired');
  await oneTime.actors.advance(MINUTE_MS);
  await oneTime.actors.restart();
  await idOf('198.51.100.2', false);
  t.equal(await oneTime.redeem(owners.id, owners.code), 'right');
  await oneTime.actors.advance(MINUTE_MS);
  const first = await idOf('192.0.2.7', true);
  await oneTime.actors.advance(MINUTE_MS);
  await idOf('192.0.2.7', true);
  t.equal(await oneTime.redeem(first.id, first.code), 'ChallengeExpired', 'one of its own class replaces it');
});

// covers S77
t.test(
  'caps: a walk through the /64s of a /56 or /48 gets four and sixteen times the codes of one',
  async (t) => {
    const { issue } = startCodes();
    let number = 0;
    const walk = async (address: (step: number) => string) => {
      for (let step = 0, issued = 0; ; step += 1) {
        number += 1;
        if (typeof (await issue(phone(number), address(step))) === 'string') return issued;
        issued += 1;
      }
    };
    t.equal(await walk((step) => `2001:db8:1:${step.toString(16)}::1`), 40);
    t.equal(await walk((step) => `2001:db8:2:${(step * 256).toString(16)}::1`), 160);
    t.equal(await walk(() => '2001:db8:3::1'), 10);
    t.type(await issue(phone(9_999), '192.0.2.7'), 'object', 'others may');
  },
);

t.test('caps: the day ends at midnight UTC, and a restart does not begin another', async (t) => {
  const { issue, actors } = startCodes({ ...NO_CAPS, OneTimeCodesPerDay: 20 });
  await actors.advance(22 * HOUR_MS);
  for (let number = 0; number < 20; number += 1) {
    const reply = await issue(phone(number), `192.0.2.${number}`);
    t.type(reply, 'object');
  }
  await actors.restart();
  t.equal(await issue(phone(50)), `AccessRateLimit ${(2 * HOUR_MS) / SECOND_MS}`);
  await actors.advance(2 * HOUR_MS - 1);
  t.equal(await issue(phone(50)), 'AccessRateLimit 1');
  await actors.advance(1);
  t.type(await issue(phone(50)), 'object');
  await actors.advance(DAY_MS);
  t.type(await issue(phone(50)), 'object');
});

t.test('caps: a lowered setting counts what was sent before', async (t) => {
  const { issue, actors } = startCodes(NO_CAPS);
  for (let sent = 0; sent < 4; sent += 1) {
    t.type(await issue(phone(1)), 'object');
    await actors.advance(MINUTE_MS);
  }
  actors.settings.set('OneTimeCodesPerContactHour', 2);
  t.equal(await issue(phone(1)), `AccessRateLimit ${(HOUR_MS - 2 * MINUTE_MS) / SECOND_MS}`);
});

t.test('code senders: many deliveries that fail leave no growing journal', async (t) => {
  const { issue, actors, chat } = startCodes({ ...NO_CAPS });
  chat.mode = 'down';
  for (let round = 0; round < 40; round += 1) {
    for (let number = 0; number < 10; number += 1) await issue(phone(number));
    await actors.advance(MINUTE_MS);
  }
  await actors.advance(10 * MINUTE_MS);
  const { administration } = actors.system;
  const growing: unknown[] = [];
  for (let id = 0; id < 16; id += 1) {
    const { stored, nextMessage } = administration.export('codeCourier', String(id));
    const rows = stored?.rows.length ?? 0;
    if (rows >= 500 || nextMessage !== undefined) growing.push([`sender ${id}`, rows, nextMessage]);
  }
  t.same(growing, []);
  t.equal(actors.journal.timers(Number.MAX_SAFE_INTEGER, 1_000).length, 0, 'nothing waits any more');
  t.same(actors.bugs, []);
});

t.test('code senders: an older code that ends late neither stops nor follows a newer one', async (t) => {
  const chat = startChat();
  const held: (() => void)[] = [];
  const answers = [true, false, true, true];
  const sent: string[] = [];
  const codes = {
    ...chat.port,
    deliver: async ({ seed }: CodeMessage): Promise<PortResult<null>> => {
      const ok = answers[sent.push(seed) - 1] === true;
      if (sent.length === 1) await new Promise<void>((resolve) => held.push(resolve));
      return ok ? { ok, value: null } : { ok, error: 'DeliveryUnavailable' };
    },
  };
  const workers = { run: async () => ({ ok: false, error: 'InternalError' }) as const };
  const actors = createTestActors({ kinds: KINDS, ports: { workers, codes } });
  const command = {
    type: 'issueCode' as const,
    ...phone(1),
    networks: [],
    known: false,
    sessionId: null,
    holder: null,
    origin: ORIGIN,
  };
  await actors.system.ask(oneTimeCodes, ONE_TIME_CODES_ID, command);
  await actors.advance(MINUTE_MS);
  await actors.system.ask(oneTimeCodes, ONE_TIME_CODES_ID, command);
  await actors.settle();
  t.equal(sent.length, 2, 'the newer one failed while the older one hangs');
  for (const go of held) go();
  await actors.advance(2 * SECOND_MS);
  t.equal(sent.length, 3);
  t.equal(sent[2], sent[1], 'the newer one is tried again');
  await actors.advance(10 * MINUTE_MS);
  t.equal(sent.length, 3, 'and that was all');
});

t.test('contacts: no text that is accepted holds more than an address', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: anyCodePoint, maxLength: 40 }), async (text) => {
      const [number, mail] = [parsePhone(text), parseEmail(text)];
      if (number !== undefined && !/^\+[0-9]{7,15}$/.test(number.address)) return false;
      return mail === undefined || /^[\x21-\x7e]+$/.test(mail.address);
    }),
    runs(2_000),
  );
  for (const tail of ['\r', '\n', '\r\n', '\u2028', '\u0000', ' ', '\t', ',b@c.de', ';b@c.de', '>']) {
    t.equal(parseEmail(`a@b.cd${tail}`), undefined, encodeURIComponent(tail));
    t.equal(parsePhone(`+491701234567${tail}`), undefined, encodeURIComponent(tail));
  }
});
