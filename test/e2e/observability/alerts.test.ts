/** Every alerting rule fires once: promtool evaluates the rules over series of a gateway in which something fails. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { runSync } from '../../../kit/run-sync.ts';
import type { MetricName } from '../../../src/io/observability/metric-table.ts';
import { alertsText, RUNBOOKS_FILE, runbooksText } from '../../../tools/dashboards/print-dashboards.ts';
import { RULES } from '../../../tools/dashboards/rules.ts';
import { SERVICE_LEVELS } from '../../../tools/dashboards/service-levels.ts';
import { lacking } from '../../support/programs/tools.ts';

/** Minutes: the longest window of a rule is three days. */
const DAYS_MINUTES = 3 * 24 * 60;
/** In the notation of promtool: a value at each minute. */
const SERIES_MINUTES = DAYS_MINUTES + 60;
const CALLS = 'gatehouse_call_gateway_duration_seconds';

type Series = Readonly<Record<string, string>>;
const UP = { 'up{job="gatehouse"}': `1x${SERIES_MINUTES}` };
const grows = (name: string, step = 60) => ({ [name]: `0+${step}x${SERIES_MINUTES}` });
const stays = (name: string, value: number) => ({ [name]: `${value}x${SERIES_MINUTES}` });
const of = (name: MetricName, labels = '') => `${name}${labels === '' ? '' : `{${labels}}`}`;

/** Series of a failure, by the alert or the service level whose rules it fires. */
const FAILURES: Readonly<Record<string, Series>> = {
  GatehouseDown: stays('up{job="gatehouse"}', 0),
  GatehouseAvailability: {
    ...grows(of('gatehouse_http_requests_total', 'status="200"'), 600),
    ...grows(of('gatehouse_http_requests_total', 'status="503"'), 60),
  },
  GatehouseToolCalls: {
    ...grows(`${CALLS}_count{event="mcp.tool"}`, 600),
    ...grows(`${CALLS}_bucket{event="mcp.tool",le="0.1"}`, 300),
  },
  GatehouseWebhookDelay: {
    ...stays(of('gatehouse_webhook_oldest_pending_seconds'), 400),
    ...stays(of('gatehouse_webhook_applications_failing'), 0),
  },
  GatehouseStreamFreshness: {
    ...stays(of('gatehouse_streams_behind'), 20),
    ...stays(of('gatehouse_streams_open'), 100),
  },
  GatehouseEventLoopBlocked: stays(of('gatehouse_nodejs_eventloop_lag_p99_seconds'), 0.3),
  GatehouseBoundReached: grows(of('gatehouse_bound_refusals_total', 'reason="maximum"')),
  GatehouseConnectionsRefused: grows(of('gatehouse_connections_refused_total')),
  GatehouseSmuggling: grows(of('gatehouse_connections_rejected_total', 'reason="smuggling"')),
  GatehouseJournalDamaged: stays(of('gatehouse_journal_damaged_records'), 1),
  GatehouseJournalBehind: stays(of('gatehouse_journal_commit_backlog'), 6_000),
  GatehouseStorageFull: grows(of('gatehouse_storage_failures_total', 'reason="full"')),
  GatehouseActorsFail: {
    ...grows(of('gatehouse_actor_bugs_total')),
    ...stays(of('gatehouse_actor_quarantines_total'), 0),
  },
  GatehouseWorkersDie: grows(of('gatehouse_worker_threads_lost_total')),
  GatehouseModulesFail: {
    ...grows(of('gatehouse_module_calls_finished_total', 'outcome="answered"')),
    ...grows(of('gatehouse_module_calls_finished_total', 'outcome="ModuleTimedOut"')),
  },
  GatehouseBreakerOpen: stays(of('gatehouse_module_breakers_open'), 1),
  GatehouseEventFeedsFail: stays(of('gatehouse_event_feeds_failing'), 1),
  GatehouseWebhooksLate: stays(of('gatehouse_webhook_oldest_pending_seconds'), 4_000),
  GatehouseRecordsDropped: {
    ...grows(of('gatehouse_log_lines_total', 'outcome="dropped"')),
    ...stays(of('gatehouse_audit_records_dropped_total'), 0),
    ...stays(of('gatehouse_trace_spans_total', 'outcome="dropped"'), 0),
  },
  GatehouseNodeNotServing: stays(of('gatehouse_cluster_lease_seconds'), 0),
  GatehouseNodeBehind: stays(of('gatehouse_cluster_lag_seconds'), 0.5),
  GatehouseNodesExpelled: grows(of('gatehouse_cluster_expulsions_total')),
  GatehouseNodeLinksDown: {
    ...stays(of('gatehouse_cluster_members'), 3),
    ...stays(of('gatehouse_cluster_links'), 1),
  },
  GatehouseTurnsRefused: grows(of('gatehouse_cluster_turns_refused_total', 'reason="refused"')),
  GatehouseAppendsSlow: {
    ...grows('gatehouse_cluster_append_seconds_bucket{le="0.25"}', 0),
    ...grows('gatehouse_cluster_append_seconds_bucket{le="1"}'),
    ...grows('gatehouse_cluster_append_seconds_bucket{le="+Inf"}'),
  },
  GatehouseHeadBloated: stays(of('gatehouse_cluster_head_dead_rows'), 20_000),
  GatehouseDatabaseRefuses: grows(of('gatehouse_cluster_database_refusals_total', 'class="28"')),
  GatehouseClockOff: stays(of('gatehouse_cluster_clock_offset_seconds'), -2),
  GatehouseNodeClockWrong: stays(of('gatehouse_cluster_out_for_clock'), 1),
  GatehouseFolderNotShared: stays(of('gatehouse_cluster_folder_apart'), 1),
  GatehouseConfigurationsDiffer: stays(of('gatehouse_cluster_other_configurations'), 1),
};

/** JSON is YAML. `alerts`: names that fire at the end. */
function unitTest(series: Series, alerts: readonly string[]): object {
  const severities = alerts.map((alert) => RULES.find((rule) => rule.alert === alert)?.severity);
  return {
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: RULES.map(({ alert }) => ({
      eval_time: `${DAYS_MINUTES}m`,
      alertname: alert,
      exp_alerts: alerts.includes(alert)
        ? [{ exp_labels: { severity: severities[alerts.indexOf(alert)] } }]
        : [],
    })),
  };
}

t.test('alerts: what fails fires its rules and no other', { skip: lacking('Prometheus') }, async (t) => {
  t.same(
    Object.keys(FAILURES).sort(),
    [...new Set(RULES.map(({ runbook, alert }) => runbook ?? alert))].sort(),
  );
  const folder = t.testdir();
  // Annotations would have to be expected word by word.
  const rules = alertsText().replace(/^ {8}annotations:\n(?: {10}.*\n)*/gm, '');
  writeFileSync(join(folder, 'rules.yml'), rules);
  const tests = Object.entries(FAILURES).map(([failure, series]) => {
    const names = RULES.filter(({ runbook, alert }) => (runbook ?? alert) === failure).map(
      ({ alert }) => alert,
    );
    return unitTest({ ...UP, ...series }, names);
  });
  const gone = unitTest({}, ['GatehouseDown']);
  // Each evaluation of the slow rules reads three days.
  const document = {
    rule_files: ['rules.yml'],
    evaluation_interval: '6h',
    tests: [unitTest(UP, []), ...tests, gone],
  };
  writeFileSync(join(folder, 'tests.yml'), JSON.stringify(document));
  const { status, stdout, stderr } = runSync('promtool', ['test', 'rules', join(folder, 'tests.yml')]);
  t.equal(status, 0, `${stdout}${stderr}`.slice(0, 4_000));
});

t.test('alerts: each names a heading of the runbooks', async (t) => {
  const headings = [...runbooksText().matchAll(/^## (.+)$/gm)].map(([, heading = '']) =>
    heading.toLowerCase(),
  );
  const named = [...alertsText().matchAll(/runbook_url: "([^#"]+)#([^"]+)"/g)];
  t.same(
    named.map(([, file, anchor]) => [file, headings.includes(anchor ?? '')]),
    RULES.map(() => [RUNBOOKS_FILE, true]),
  );
});

t.test('alerts: the windows of a service level burn at rates that its objective allows', async (t) => {
  for (const { name, objective } of SERVICE_LEVELS) {
    const rules = RULES.filter(({ runbook }) => runbook === name);
    t.ok(rules.length > 1 && rules.every(({ above }) => above >= 1 - objective - 1e-9 && above < 1), name);
  }
});
