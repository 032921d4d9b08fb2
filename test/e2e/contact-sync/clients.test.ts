/** CardDAV clients of other projects sync with the sandbox's contacts through the running program. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { expectOk, type Json, type Person, request, signUp, updateKey } from '../../../kit/agent.ts';
import { launchFor } from '../../../kit/launch.ts';
import { runSync } from '../../../kit/run-sync.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';
import { lacking } from '../../support/programs/tools.ts';

t.setTimeout(240_000);

const BOOK = '/contacts/v1/books/contacts/';

interface Device {
  readonly person: Person;
  readonly token: Json;
  readonly folder: string;
  readonly dav: Dav;
}

/** A request of the device. */
type Dav = (
  method: string,
  path: string,
  headers?: Record<string, string>,
  body?: string,
) => Promise<Response>;

function davOf(url: string, username: string, token: string): Dav {
  const authorization = `Basic ${Buffer.from(`${username}:${token}`).toString('base64')}`;
  return (method, path, headers = {}, body = undefined) =>
    fetch(url + path, {
      method,
      headers: { authorization, ...headers },
      ...(body === undefined ? {} : { body }),
    });
}

const dataPath = temporaryFolder(t);
const launchAgain = () => launchFor(t, { args: ['--sandbox'], configuration: {}, dataPath });
/** Serves all tests; the last one kills it. */
const gateway = await launchAgain();

async function start(t: Test): Promise<Device> {
  const person = await signUp(gateway.url);
  expectOk('update_key', await updateKey(gateway.url, person, { cardDavAccess: true }));
  const added = await ownerPost(person, 'token', { keyId: person.keyId, name: 'Phone' });
  const token = expectOk('token', added).json['result'] as Json;
  const dav = davOf(gateway.url, person.userId, String(token['token']));
  return { person, token, folder: temporaryFolder(t), dav };
}

function ownerPost({ cookie }: Person, path: string, body: object) {
  return request(`${gateway.url}/auth/v1/contact_sync/${path}`, {
    method: 'POST',
    headers: { Cookie: cookie, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
}

function card(uid: string, name = uid): string {
  return `BEGIN:VCARD\r\nVERSION:3.0\r\nUID:${uid}\r\nFN:${name} Löve & Co <x>\r\nN:Löve;${name};;;\r\nEND:VCARD\r\n`;
}

/** Runs `vdirsyncer`, whose folder and memory are below `folder`. */
function vdirsyncer({ person, token, folder }: Device) {
  const configuration = join(folder, 'vdirsyncer.conf');
  const sections = {
    general: { status_path: join(folder, 'status') },
    'pair contacts': { a: 'local', b: 'remote', collections: ['from b'] },
    'storage local': { type: 'filesystem', path: join(folder, 'local'), fileext: '.vcf' },
    'storage remote': {
      type: 'carddav',
      url: `${gateway.url}/`,
      username: person.userId,
      password: String(token['token']),
    },
  };
  const lines = Object.entries(sections).flatMap(([name, values]) => [
    `[${name}]`,
    ...Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value)}`),
  ]);
  writeFileSync(configuration, lines.join('\n'));
  return (command: 'discover' | 'sync') => {
    const { status, stdout, stderr } = runSync('sh', [
      '-c',
      `yes | vdirsyncer -c "$0" ${command}`,
      configuration,
    ]);
    return { status, output: stdout + stderr };
  };
}

t.test(
  'vdirsyncer: finds the address book by the address alone and syncs both ways',
  {
    skip: lacking('vdirsyncer'),
  },
  async (t) => {
    const device = await start(t);
    const { person, token, folder, dav } = device;
    const run = vdirsyncer(device);
    mkdirSync(join(folder, 'local'));
    const found = run('discover');
    t.match(found, { status: 0, output: /"contacts" \("Contacts"\)/ });
    const local = join(folder, 'local', 'contacts');
    writeFileSync(join(local, 'ada.vcf'), card('ada'));
    t.equal((await dav('PUT', `${BOOK}bob.vcf`, { 'If-None-Match': '*' }, card('bob'))).status, 201);
    t.match(run('sync'), { status: 0 });
    t.equal(await (await dav('GET', `${BOOK}ada.vcf`)).text(), card('ada'), 'uploaded');
    t.equal(readFileSync(join(local, 'bob.vcf'), 'utf8'), card('bob'), 'downloaded');
    const { headers } = await dav('HEAD', `${BOOK}bob.vcf`);
    const changed = await dav(
      'PUT',
      `${BOOK}bob.vcf`,
      { 'If-Match': headers.get('etag') ?? '' },
      card('bob', 'Robert'),
    );
    t.equal(changed.status, 204);
    rmSync(join(local, 'ada.vcf'));
    t.match(run('sync'), { status: 0 });
    t.equal((await dav('GET', `${BOOK}ada.vcf`)).status, 404, 'removed here, so there too');
    t.equal(
      readFileSync(join(local, 'bob.vcf'), 'utf8'),
      card('bob', 'Robert'),
      'changed there, so here too',
    );
    expectOk('remove', await ownerPost(person, 'remove', { id: String(token['id']) }));
    const refused = run('sync');
    t.not(refused.status, 0, 'the token was removed');
    t.match(refused.output, /401/);
    t.same(readdirSync(local), ['bob.vcf'], 'nothing is lost');
  },
);

t.test(
  'cadaver: answers the challenge, lists, puts, gets and deletes',
  { skip: lacking('cadaver') },
  async (t) => {
    const { person, token, folder, dav } = await start(t);
    writeFileSync(
      join(folder, '.netrc'),
      `machine ${new URL(gateway.url).hostname} login ${person.userId} password ${token['token']}\n`,
      { mode: 0o600 },
    );
    writeFileSync(join(folder, 'ada.vcf'), card('ada'));
    const commands = ['put ada.vcf', 'ls', 'get ada.vcf got.vcf', 'delete ada.vcf', 'ls', 'quit'];
    const script = `printf '%s\\n' "$@" | HOME="$0" cadaver "${gateway.url}${BOOK}"`;
    const { stdout } = runSync('sh', ['-c', script, folder, ...commands], { cwd: folder });
    t.match(stdout, /Uploading ada\.vcf[^\n]*\n?[^\n]*succeeded/);
    t.match(stdout, /ada\.vcf +[0-9]+ /, 'listed');
    t.match(stdout, /Deleting `ada\.vcf': succeeded/);
    t.equal(readFileSync(join(folder, 'got.vcf'), 'utf8'), card('ada'));
    t.equal((await dav('GET', `${BOOK}ada.vcf`)).status, 404);
  },
);

t.test('sandbox contacts: belong to their user alone, and outlive kill -9 as the token does', async (t) => {
  const { person, token, dav } = await start(t);
  const other = await signUp(gateway.url);
  t.equal((await dav('PUT', `${BOOK}ada.vcf`, {}, card('ada'))).status, 201);
  const foreign = await fetch(`${gateway.url}${BOOK}ada.vcf`, { headers: { Cookie: other.cookie } });
  t.equal(foreign.status, 404);
  await gateway.kill();
  const again = await launchAgain();
  const query = '<c:addressbook-query xmlns:c="urn:ietf:params:xml:ns:carddav"/>';
  const list = await davOf(again.url, person.userId, String(token['token']))('REPORT', BOOK, {}, query);
  t.equal(list.status, 207);
  t.match(await list.text(), /ada Löve &amp; Co &lt;x&gt;/);
});
