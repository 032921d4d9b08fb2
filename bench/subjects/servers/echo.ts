/** The module of the WebSocket bench: the echo of the sandbox, on any path. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Echo } from '../../../src/sandbox/echo.ts';
import { tellParent } from './listen.ts';

const echo = new Echo();
const server = createServer((_request, response) => response.end('{}'));
server.on('upgrade', (request, stream, head) => echo.accept(request, stream, head));
server.listen(0, '127.0.0.1', () => tellParent(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
