/** The commands of `npm run cluster`, one a line: what to do to a node, by its name. */
import type { NodeProcess } from '../../kit/cluster/nodes.ts';

export const COMMANDS = `commands  k NAME  kill -9        s NAME  stop as a hang (SIGSTOP)   c NAME  continue
          l NAME  let it leave   r NAME  restart                     t       table      q  quit
`;

export interface ControlledNode {
  readonly node: NodeProcess;
  isStopped: boolean;
}

/** A sentence for the terminal; undefined where there is nothing to say. */
export async function runCommand(
  line: string,
  nodes: ReadonlyMap<string, ControlledNode>,
): Promise<string | undefined> {
  const [command = '', name = ''] = line.trim().split(/\s+/);
  const controlled = nodes.get(name);
  if (!'ksclr'.includes(command) || command.length !== 1) return COMMANDS;
  if (controlled === undefined) return `there is no node "${name}"\n`;
  const { node } = controlled;
  const { process, exited } = node.gateway;
  const runs = process.exitCode === null && process.signalCode === null;
  if (!runs && command !== 'r') return `the process of ${name} has ended: r ${name} starts it\n`;
  switch (command) {
    case 'k':
      process.kill('SIGKILL');
      break;
    case 's':
      controlled.isStopped = process.kill('SIGSTOP');
      return undefined;
    case 'c':
      process.kill('SIGCONT');
      break;
    case 'l':
      endGently(controlled);
      break;
    default:
      if (runs) {
        endGently(controlled);
        await exited;
      }
      await node.start();
  }
  controlled.isStopped = false;
  return undefined;
}

function endGently({ node, isStopped }: ControlledNode): void {
  // A stopped process would not see the other signal.
  if (isStopped) node.gateway.process.kill('SIGCONT');
  node.gateway.process.kill('SIGTERM');
}
