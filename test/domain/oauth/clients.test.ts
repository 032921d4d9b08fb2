import t from 'tap';
import {
  APPLICATION_REDIRECTS,
  isPrivateRedirect,
  judgeRedirect,
  KNOWN_PRIVATE_REDIRECTS,
} from '../../../src/domain/oauth/clients.ts';

t.test(
  'redirects: of an application any private scheme is taken, but those that browsers act on',
  async (t) => {
    for (const uri of ['studio://private', 'cursor://any/x?y=1', 'com.example.app:/cb'])
      t.match(judgeRedirect(uri, APPLICATION_REDIRECTS), { ok: true, destination: { kind: 'program' } }, uri);
    for (const uri of [
      'javascript:alert(1)',
      'data:text/html,x',
      'intent://x/',
      'ssh://host/',
      'http://host.example/',
    ])
      t.equal(judgeRedirect(uri, APPLICATION_REDIRECTS).ok, false, uri);
  },
);

t.test('redirects: a private URI without a known name is shown by its scheme', async (t) => {
  const rules = { webHosts: null, privateUris: [] };
  t.match(judgeRedirect('com.example.app:/cb', rules), {
    destination: { kind: 'program', host: 'com.example.app', program: null },
  });
});

// covers S93
t.test(
  'OAuthPrivateRedirects: a value has an authority and a plain path, and never a web address',
  async (t) => {
    for (const value of [...KNOWN_PRIVATE_REDIRECTS, 'studio://auth/', 'studio://auth/callback'])
      t.equal(isPrivateRedirect(value), true, value);
    for (const value of [
      'cursor:',
      'cursor://',
      'cursor:///oauth/',
      'cursor://anysphere.cursor-mcp',
      'cursor://x/?a=1',
      'cursor://x/#a',
      'cursor://x/../',
      'cursor://me@x/',
      'http://localhost/',
      'https://host.example/',
      'file://host/',
      'Cursor://x/',
      '',
    ])
      t.equal(isPrivateRedirect(value), false, value);
  },
);
