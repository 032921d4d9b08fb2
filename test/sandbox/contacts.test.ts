/** The sandbox contacts module: CardDAV of one address book a user. */
import t from 'tap';
import { CARDS_MAX } from '../../src/sandbox/contacts/books.ts';
import type { DavRequest } from '../../src/sandbox/dav.ts';
import type { SandboxStore } from '../../src/sandbox/store.ts';
import { logPath, openStore, refusalOf, reopen } from '../support/sandbox.ts';

const ROOT = '/contacts/v1/';
const BOOK = `${ROOT}books/contacts/`;
const CARD = 'BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ada & "Co" <x>\r\nEND:VCARD\r\n';

function dav(store: SandboxStore, method: string, path: string, more: Partial<DavRequest> = {}) {
  const none = { depth: undefined, ifMatch: undefined, ifNoneMatch: undefined };
  return store.dav({ method, path, body: '', crm: '42', ...none, ...more });
}

const etagOf = (answer: { headers?: readonly (readonly [string, string])[] }) =>
  new Map(answer.headers).get('ETag') ?? '';

t.test('contacts: a client finds the address book from the root', async (t) => {
  const store = await openStore(t);
  const steps: readonly [string, RegExp][] = [
    [ROOT, /<D:current-user-principal><D:href>\/contacts\/v1\/principal\/</],
    [`${ROOT}principal/`, /<C:addressbook-home-set><D:href>\/contacts\/v1\/books\/</],
    [`${ROOT}books/`, /<D:href>\/contacts\/v1\/books\/contacts\/<\/D:href>.*<C:addressbook\/>/],
  ];
  for (const [path, found] of steps) {
    const answer = await dav(store, 'PROPFIND', path, { depth: '1' });
    t.match(answer, { status: 207, body: found, contentType: /^application\/xml/ }, path);
  }
  t.match(new Map((await dav(store, 'OPTIONS', BOOK)).headers).get('DAV'), /addressbook/);
});

t.test('contacts: cards are put, listed, read and removed, with validators', async (t) => {
  const store = await openStore(t);
  const path = `${BOOK}ada.vcf`;
  const put = await dav(store, 'PUT', path, { body: CARD, ifNoneMatch: '*' });
  t.equal(put.status, 201);
  t.match(await dav(store, 'GET', path), { status: 200, body: CARD, contentType: /^text\/vcard/ });
  t.match(await dav(store, 'PROPFIND', path, { depth: '0' }), { body: /<D:getetag>&quot;[0-9]+&quot;</ });
  const listed = await dav(store, 'PROPFIND', BOOK, { depth: '1' });
  t.match(listed.body, /books\/contacts\/ada\.vcf/);
  t.notMatch((await dav(store, 'PROPFIND', BOOK, { depth: '0' })).body, /ada\.vcf/);
  t.strictSame(refusalOf(await dav(store, 'PUT', path, { body: CARD, ifNoneMatch: '*' })), [412, 2501]);
  t.strictSame(refusalOf(await dav(store, 'PUT', path, { body: CARD, ifMatch: '"1"' })), [412, 2501]);
  const changed = await dav(store, 'PUT', path, { body: CARD, ifMatch: etagOf(put) });
  t.equal(changed.status, 204);
  t.not(etagOf(changed), etagOf(put));
  t.strictSame(refusalOf(await dav(store, 'DELETE', path, { ifMatch: etagOf(put) })), [412, 2501]);
  t.equal((await dav(store, 'DELETE', path, { ifMatch: etagOf(changed) })).status, 204);
  t.strictSame(refusalOf(await dav(store, 'GET', path)), [404, 2003]);
  t.strictSame(refusalOf(await dav(store, 'DELETE', path)), [404, 2003]);
});

t.test('contacts: reports give the named cards, or all', async (t) => {
  const store = await openStore(t);
  for (const name of ['ada', 'bob']) await dav(store, 'PUT', `${BOOK}${name}.vcf`, { body: CARD });
  const report = (body: string, path = BOOK) => dav(store, 'REPORT', path, { body });
  const multiget = (href: string) =>
    report(
      `<?xml version="1.0"?><A:addressbook-multiget xmlns:A="x"><B:href>${href}</B:href></A:addressbook-multiget>`,
    );
  for (const href of [`${BOOK}ada.vcf`, `http://gate.example${BOOK}ada.vcf`]) {
    const { body } = await multiget(href);
    t.match(
      body,
      /<C:address-data>BEGIN:VCARD&#13;\nVERSION:3.0&#13;\nFN:Ada &amp; &quot;Co&quot; &lt;x&gt;/,
    );
    t.notMatch(body, /bob/);
  }
  t.match((await multiget(`${BOOK}none.vcf`)).body, /none\.vcf<\/D:href><D:status>HTTP\/1\.1 404/);
  t.match((await report('<addressbook-query/>')).body, /ada\.vcf.*bob\.vcf/s);
  t.strictSame(refusalOf(await report('<D:sync-collection xmlns:D="DAV:"/>')), [403, 2007]);
  t.strictSame(refusalOf(await report('nothing')), [403, 2007]);
  t.strictSame(refusalOf(await report('<addressbook-query/>', ROOT)), [403, 2007]);
});

t.test('contacts: what is no card, no path, no user or too much is refused', async (t) => {
  const store = await openStore(t);
  const refusals: readonly [
    method: string,
    path: string,
    more: Partial<DavRequest>,
    status: number,
    code: number,
  ][] = [
    ['PUT', `${BOOK}a.vcf`, { body: 'hello' }, 400, 2002],
    ['GET', BOOK, {}, 405, 2004],
    ['MKCOL', BOOK, {}, 405, 2004],
    ['GET', `${BOOK}a/b.vcf`, {}, 404, 2003],
    ['PROPFIND', `${ROOT}other/`, {}, 404, 2003],
    ['PROPFIND', BOOK, { depth: 'infinity' }, 403, 2007],
    ['PROPFIND', BOOK, { crm: undefined }, 401, 2001],
  ];
  for (const [method, path, more, ...refusal] of refusals)
    t.strictSame(refusalOf(await dav(store, method, path, more)), refusal, `${method} ${path}`);
  for (let card = 0; card < CARDS_MAX; card += 1)
    await dav(store, 'PUT', `${BOOK}${card}.vcf`, { body: CARD });
  t.strictSame(refusalOf(await dav(store, 'PUT', `${BOOK}one-more.vcf`, { body: CARD })), [409, 2502]);
  t.equal((await dav(store, 'PUT', `${BOOK}7.vcf`, { body: CARD })).status, 204, 'one that is there');
});

t.test('contacts: each user has a book, which a restart brings back', async (t) => {
  const path = await logPath(t);
  const first = await openStore(t, path);
  await dav(first, 'PUT', `${BOOK}ada.vcf`, { body: CARD });
  await dav(first, 'PUT', `${BOOK}bob.vcf`, { body: CARD });
  await dav(first, 'DELETE', `${BOOK}bob.vcf`);
  const { body } = await dav(first, 'PROPFIND', BOOK, { depth: '1' });
  const second = await reopen(t, first, path);
  t.equal((await dav(second, 'PROPFIND', BOOK, { depth: '1' })).body, body);
  t.notMatch((await dav(second, 'PROPFIND', BOOK, { depth: '1', crm: '43' })).body, /\.vcf/);
});
