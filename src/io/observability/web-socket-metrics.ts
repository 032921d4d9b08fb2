/** The part of the metric table that is about WebSockets. */
import { SOCKET_ENDS } from '../../domain/web-sockets.ts';
import { counter, gauge, label } from './metric-definition.ts';

const direction = label('direction', ['to_module', 'to_client']);

export const WEB_SOCKET_METRICS = {
  gatehouse_websockets_open: gauge(
    'sockets',
    'WebSockets, those whose handshake or end is under way included.',
  ),
  gatehouse_websockets_opened_total: counter('sockets', 'WebSockets that were opened.'),
  gatehouse_websockets_ended_total: counter(
    'sockets',
    'WebSockets that ended: by either side (`client`, `module`), because a connection broke (`lost`, `cut`), or by the gateway (docs/modules.md).',
    label('reason', SOCKET_ENDS),
  ),
  gatehouse_websocket_messages_total: counter('messages', 'Messages of WebSockets.', direction),
  gatehouse_websocket_bytes_total: counter('bytes', 'Bytes of these messages.', direction),
};
