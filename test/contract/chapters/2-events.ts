/** Contract, sections 2.6, 2.7 and 2.9: webhook events, uploads, runtime settings. */
import { type Check, checksOf } from '../check.ts';
import { read } from '../client.ts';
import { sectionDefaults } from '../tables.ts';
import { expectOk } from '../unshown.ts';
import { crcOf, createDraft, draftOf, initUpload, smallFile, uploadV1, uploadV2 } from '../uploads.ts';
import type { World } from '../world.ts';

/** Registers an application of a new person whose webhooks arrive under a path of its own. */
export async function hooked(world: World, path: string, fields: object = {}) {
  const owner = await world.mcpPerson();
  const body = {
    name: path,
    url: `https://${path}.example`,
    webhookUrl: `${world.hook.url}/${path}`,
    ...fields,
  };
  const app = expectOk('app', await world.app(owner, body));
  return { owner, appId: app.textAt('result.id'), apiKey: app.textAt('result.apiKey') };
}

/** Events that arrived under a path, in order of arrival. */
export function eventsAt(world: World, path: string): Record<string, unknown>[] {
  return world.hook.asked
    .filter(({ url }) => url === `/${path}`)
    .flatMap(({ body }) => [JSON.parse(body) as Record<string, unknown>].flat());
}

/** The first event of a type under a path. */
export async function eventOf(world: World, path: string, type: string): Promise<Record<string, unknown>> {
  const fits = (event: Record<string, unknown>) => event['type'] === type;
  await world.hook.until(({ url }) => url === `/${path}` && eventsAt(world, path).some(fits));
  return eventsAt(world, path).find(fits) ?? {};
}

const EVENT = checksOf('2.6', {
  'an event has module, tick, type and data, and no other field': {
    sentence:
      'module | string | The module that sent it, such as wallet, chat, core. … tick | string (int64) | Time of the event in ticks. … type | string | Name of the event type. … data | object | Its fields depend on the event.',
    async run(t, world) {
      const { owner } = await hooked(world, 'shape');
      const event = { module: 'core', tick: '9007199254740993', type: 'Shape', data: { n: 1.5 } };
      await world.pushed([{ ...event, crmId: owner.userId }]);
      t.same(await eventOf(world, 'shape', 'Shape'), event);
    },
  },
  'crmId and subject of an event are not delivered': {
    sentence: 'The fields crmId and subject serve routing and are left out.',
    async run(t, world) {
      const { owner } = await hooked(world, 'routing');
      const event = { module: 'core', tick: '200', type: 'Routing', data: { n: 2 } };
      await world.pushed([{ ...event, crmId: owner.userId, subject: 'secret-subject' }]);
      t.same(await eventOf(world, 'routing', 'Routing'), event);
    },
  },
  'a transfer arrives with the twelve fields and their types': {
    sentence:
      'data of a wallet event is a transaction event: … id | string (int64) | … tick | string (int64) | … currency | string | Code of the currency. … amount | decimal number | With the precision of the currency applied. … fee | decimal number | Scaled likewise. … externalId | string (int64) | … appId | string (int64) | … partnerInfo | string or null | … tag | string or null | … dateTime | string | ISO 8601, UTC.',
    async run(t, world) {
      const { owner } = await hooked(world, 'wallet');
      const receiver = await world.agent('McpVerified', owner);
      await world.toolJson(receiver.auth, 'wallet_get_balance');
      const { auth } = await world.agent();
      const transfer = { currency: 'DEMO', amount: '12.50', toUserId: owner.userId, tag: 'lunch' };
      await world.toolJson(auth, 'wallet_internal_transfer', transfer);
      const event = await eventOf(world, 'wallet', 'TxInWallet');
      t.match(event, { module: 'wallet', tick: /^\d+$/ });
      const data = event['data'] as Record<string, unknown>;
      for (const name of ['id', 'tick', 'externalId', 'appId']) t.match(data[name], /^\d+$/, name);
      for (const name of ['amount', 'fee']) t.type(data[name], 'number', name);
      t.match(data, { currency: 'DEMO', amount: 12.5, tag: 'lunch' });
      t.ok('partnerInfo' in data);
      t.match(data['dateTime'], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    },
  },
  'txType and state of a transfer are integers': {
    sentence:
      'txType | integer | Number of the type. … state | integer | Number of the state. … Enumerations appear as numbers and not as names.',
    async run(t, world) {
      const { data } = (await eventOf(world, 'wallet', 'TxInWallet')) as { data: Record<string, unknown> };
      t.ok(Number.isInteger(data['txType']) && Number.isInteger(data['state']), JSON.stringify(data));
    },
  },
});

const UPLOAD = checksOf('2.7', {
  'init_upload returns the CRC32 as an integer': {
    sentence: 'A v1 upload has the id uploadId, an integer: the CRC-32 that was declared for the whole file.',
    async run(t, world) {
      const { auth } = await world.person();
      const bytes = smallFile();
      t.equal(expectOk('init', await initUpload(world, auth, bytes)).at('result'), crcOf(bytes));
    },
  },
  'a second upload of the same user is refused, an upload of another user is not': {
    sentence: 'A user has one active upload,',
    async run(t, world) {
      const [one, other] = [await world.person(), await world.person()];
      expectOk('first', await initUpload(world, one.auth, smallFile()));
      t.equal((await initUpload(world, one.auth, smallFile())).at('error.code'), 1302);
      t.equal((await initUpload(world, other.auth, smallFile())).status, 200);
    },
  },
  'create_draft returns a file id and a code that does not contain it': {
    sentence:
      'A v2 draft is a pending file message in the chat, created before the bytes. The id of the file identifies it. The draft has a file code, from which the id cannot be read.',
    async run(t, world) {
      const { auth } = await world.person();
      const draft = draftOf(await createDraft(world, auth, { fileName: 'a.txt', fileSize: 3, chatId: 0 }));
      t.match(draft.fileId, /^\d+$/);
      t.match(draft.fileCode, /./);
      t.notOk(draft.fileCode.includes(draft.fileId));
    },
  },
  'the chat lists messages whose ids are the file ids of v1 and v2': {
    sentence: "An attachment's file id is the id of its chat message.",
    async run(t, world) {
      const { auth, person } = await world.agent();
      const chatId = String(read(await world.toolJson(auth, 'chat_create', { name: 'Files' }), 'result.id'));
      const first = await uploadV1(world, person, smallFile(), { ChatId: chatId });
      const second = await uploadV2(world, person, smallFile(), { chatId });
      const list = read(
        await world.toolJson(auth, 'chat_messages', { chatId }),
        'result.messages',
      ) as unknown[];
      const ids = list.map((message) => read(message, 'id'));
      t.ok(ids.includes(first.fileId) && ids.includes(second.fileId), JSON.stringify(ids));
    },
  },
});

const OTHER = checksOf('2.9', {
  'the admin panel lists every setting of section 8 with its default': {
    sentence: 'Settings of rate limits and files, with defaults, are in section 8.',
    async run(t, world) {
      const { auth } = await world.admin();
      const list = expectOk('settings', await world.get('/ProxyAdmin/api/settings', auth)).listAt('result');
      const defaults = new Map(list.map((row) => [read(row, 'name'), read(row, 'default')]));
      t.equal(sectionDefaults().size, 12);
      for (const [name, value] of sectionDefaults()) t.equal(defaults.get(name), value, name);
    },
  },
});

export const CHECKS: readonly Check[] = [...EVENT, ...UPLOAD, ...OTHER];
