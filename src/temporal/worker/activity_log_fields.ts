import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import { withLogFields } from '../../telemetry/log_fields.ts';

/** Gives the log lines of an activity its name, its workflow and the ids of its input: of the run, the export, the delivery. */
export const activityLogFields: ActivityInterceptorsFactory = ({ info }) => ({
  inbound: {
    execute: (input, next) =>
      withLogFields(
        {
          activity: info.activityType,
          workflow_id: info.workflowExecution?.workflowId,
          ...idsOf(input.args[0]),
        },
        () => next(input),
      ),
  },
});

/** Inputs name everything else by its id. */
function idsOf(input: unknown): Record<string, string> {
  if (typeof input !== 'object' || input === null) return {};
  const ids = Object.entries(input).filter(
    (field): field is [string, string] => field[0].endsWith('_id') && typeof field[1] === 'string',
  );
  return Object.fromEntries(ids);
}
