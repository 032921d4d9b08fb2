/** Metrics of calls to modules and to other MCP servers, these by their names in the configuration. */
import { counter, gauge, label, openLabel } from './metric-definition.ts';

export const MODULE_METRICS = {
  gatehouse_module_calls_total: counter('calls', 'Calls of modules.'),
  gatehouse_module_calls_finished_total: counter(
    'calls',
    'Finished calls of modules: answered, or the error.',
    label('outcome', [
      'answered',
      'ModuleFailed',
      'ModuleTimedOut',
      'ModuleUnavailable',
      'ModuleAnswerTooLarge',
      'Overloaded',
      'AccessRateLimit',
      'Aborted',
    ]),
  ),
  gatehouse_module_retries_total: counter('calls', 'Calls of modules that were sent again.'),
  gatehouse_module_calls_pending: gauge('calls', 'Calls of modules that wait or run.'),
  gatehouse_module_breakers_open: gauge('endpoints', 'Endpoints whose circuit breaker is open.'),
  gatehouse_mcp_server_up: gauge(
    'servers',
    '1 while another MCP server answers, 0 while it does not.',
    openLabel('server'),
  ),
  gatehouse_mcp_server_tools: gauge(
    'tools',
    'Tools of another MCP server: those that are served, those that wait for an admin, and those that are left out for a fault.',
    openLabel('server'),
    label('state', ['served', 'hidden', 'leftOut']),
  ),
  gatehouse_mcp_server_calls_total: counter(
    'calls',
    'Calls of tools of another MCP server, by whether an answer came.',
    openLabel('server'),
    label('outcome', ['answered', 'failed']),
  ),
  gatehouse_mcp_server_restarts_total: counter(
    'processes',
    'Processes of an MCP server by command that were started after the first: it had ended, or had stopped listing its tools.',
    openLabel('server'),
  ),
};
