/** Prepares a mixed load: the gateway with its sandbox modules, and all accounts, created through the API. */
import { expectOk, type Person, request } from '../../../kit/agent.ts';
import { bearersOf } from '../../load/requests.ts';
import { startServer } from '../../measure/children.ts';
import type { Bench } from '../../scenario.ts';
import { type GatewayUnderLoad, gatewayUnderLoad, makeAgents } from '../../subjects/gateway.ts';
import { RawConnection } from '../transfers/raw-connection.ts';
import { FILE_BYTES, type MixedFixture } from './kinds.ts';

const MODULE_KEY = 'bench-module-key-0123456789';
const CALLERS = 16;
const LOGGING_IN = 8;
const UPLOADING = 8;
/** Callers that have streams and an application. */
const AUDIENCE = 8;
/** Small, so that the journal reaches its final size soon and a soak can check it. */
const BOUNDED_LOGS = { AuditRowsMax: 5_000, EventRowsMax: 5_000 };

export interface MixedSetup extends GatewayUnderLoad {
  readonly fixture: MixedFixture;
  /** Cookies of the audience; each has one event stream. */
  readonly streamCookies: readonly string[];
  /** Address of the webhooks' receiver; undefined: there are none. */
  readonly receiver: string | undefined;
}

export async function prepareMixed(bench: Bench): Promise<MixedSetup> {
  const modules = { core: { url: 'http://127.0.0.1:9', key: MODULE_KEY } };
  const settings = { EventReorderMilliseconds: 0, ...BOUNDED_LOGS };
  const gateway = await gatewayUnderLoad(bench, modules, { sandbox: true, settings });
  const { url } = gateway;
  // At a deployment elsewhere files would stay behind, and the internal listener is its operator's.
  const isOwn = bench.options.target === undefined;
  const callers = await makeAgents(bench, url, bench.options.users || CALLERS);
  const loggingIn = await makeAgents(bench, url, isOwn ? LOGGING_IN : 1);
  const uploading = isOwn ? await makeAgents(bench, url, UPLOADING) : [];
  const own = isOwn ? gateway.internal : undefined;
  const audience = callers.slice(0, AUDIENCE);
  const receiver = own === undefined ? undefined : await hook(bench, url, audience);
  const fixture: MixedFixture = {
    url,
    internal: own,
    moduleKey: MODULE_KEY,
    bearers: await bearersOf(url, callers),
    cookies: callers.map(({ cookie }) => cookie),
    loginKeys: loggingIn.map(({ key }) => key),
    uploadCookies: uploading.map(({ cookie }) => cookie),
    filePath: uploading[0] === undefined ? undefined : await uploadFile(url, uploading[0].cookie),
    audience: audience.map(({ userId }) => userId),
  };
  return { ...gateway, fixture, receiver, streamCookies: audience.map(({ cookie }) => cookie) };
}

/** An application with a webhook for each of them; the receiver's address. */
async function hook(bench: Bench, url: string, owners: readonly Person[]): Promise<string> {
  const receiver = await startServer('webhooks');
  bench.onTeardown(() => receiver.stop());
  for (const [index, { cookie }] of owners.entries()) {
    const address = `https://mixed${index}.example`;
    const body = { name: `Mixed ${index}`, url: address, webhookUrl: `${receiver.url}/hook` };
    const headers = { Cookie: cookie };
    expectOk('upsert', await request(`${url}/auth/v1/app/upsert_usr_app`, { headers, body }));
  }
  return receiver.url;
}

async function uploadFile(url: string, cookie: string): Promise<string> {
  const connection = await RawConnection.open(url);
  const query = `fileName=mixed.bin&fileSize=${FILE_BYTES}`;
  const draft = await connection.ask('POST', `/auth/v2/file/create_draft?${query}`, { Cookie: cookie });
  const [, fileId, code] = /"result":"(\d+):([^"]+)"/.exec(draft.text) ?? [];
  if (fileId === undefined) throw new Error(`create_draft: ${draft.status} ${draft.text}`);
  const headers = { Cookie: cookie, 'Content-Type': 'application/octet-stream' };
  const bytes = Buffer.alloc(FILE_BYTES, 'the file of the mixed bench; ');
  const path = `/auth/v2/file/stream_upload/${fileId}`;
  const { status, text } = await connection.ask('POST', path, headers, bytes);
  if (status !== 200) throw new Error(`stream_upload: ${status} ${text}`);
  connection.close();
  return `/auth/v2/file/${code}`;
}
