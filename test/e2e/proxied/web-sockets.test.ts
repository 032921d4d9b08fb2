/** WebSockets through the program to the echo of the sandbox: sessions of a browser and of an agent, and a stop. */
import t from 'tap';
import { expectOk, type Json, mcpLogin, request, signUp, signUpAgent } from '../../../kit/agent.ts';
import { launchFor, NO_LIMITS } from '../../../kit/launch.ts';
import { openEcho } from '../../support/echo-client.ts';

t.setTimeout(120_000);

const gateway = await launchFor(t, { args: ['--sandbox'], configuration: { Settings: NO_LIMITS } });

const open = (headers: Record<string, string>) => openEcho(gateway.url, headers);

async function metric(name: string): Promise<string | undefined> {
  const { text } = await request(`${gateway.internal}/metrics`, {});
  return text.split('\n').find((line) => line.startsWith(`${name} `));
}

t.test('a browser and an agent reach the echo; each socket ends with its session', async (t) => {
  const person = await signUpAgent(gateway.url);
  const login = expectOk('mcp_login', await mcpLogin(gateway.url, person.key, Date.now()));
  const bearer = String((login.json['result'] as Json)['sessionId']);
  const agent = await open({ authorization: `Bearer ${bearer}` });
  const browser = await open({ cookie: person.cookie, origin: gateway.url });
  t.equal(await browser.echoed('from a browser'), 'from a browser');
  t.equal(await agent.echoed('from an agent'), 'from an agent');
  t.equal(await metric('gatehouse_websockets_open'), 'gatehouse_websockets_open 2');
  const headers = { cookie: person.cookie };
  expectOk(
    'others',
    await request(`${gateway.url}/auth/v1/close_sessions`, { headers, body: { others: true } }),
  );
  t.equal(await agent.ended, 1008);
  t.equal(await browser.echoed('still there'), 'still there');
  expectOk('logout', await request(`${gateway.url}/auth/v1/logout`, { headers, body: {} }));
  t.equal(await browser.ended, 1008);
});

t.test('a stop ends open sockets with 1012, and the program ends in order', async (t) => {
  const person = await signUp(gateway.url);
  const socket = await open({ cookie: person.cookie });
  const stopped = gateway.stop();
  t.equal(await socket.ended, 1012);
  t.match(await stopped, { code: 0 });
});
