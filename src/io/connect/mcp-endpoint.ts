/** MCP with OAuth: an endpoint where every request without a token of it is a challenge, GET and `initialize` included. */
import { Reply } from '../http/table/route.ts';
import type { McpEndpoint } from '../mcp/authenticate.ts';
import { rpcFailure } from '../mcp/rpc.ts';
import { audienceOf, bearerChallenge, CONNECT_PATH } from './resources.ts';

/** `path` may have parameters: the path of the request is the resource. */
export function protectedEndpoint(path: string = CONNECT_PATH): McpEndpoint {
  return {
    path,
    summary: 'MCP for hosts that connect with OAuth: the methods of /mcp, with a token alone',
    audienceOf: ({ rawPath }) => audienceOf(rawPath),
    challenge(context, { kind }, id): Reply {
      const isDead = kind === 'unknown';
      const detail = isDead ? 'the token is not valid here, authorize again' : 'authorize first';
      const { text } = rpcFailure(id, 'TokenRequired', detail);
      const value = bearerChallenge(context, context.rawPath, isDead);
      const headers = [['WWW-Authenticate', value]] as const;
      return new Reply(401, text, 'application/json', headers, undefined, 'TokenRequired');
    },
  };
}
