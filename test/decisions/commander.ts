import { randomUUID } from 'node:crypto';
import { readSettings } from '../../src/config/settings.ts';
import { createPolicies, type Policies } from '../../src/decisions/policies.ts';
import { configRules } from '../../src/temporal/capabilities.ts';
import { advanceSchedule, type ScheduleStep } from '../../src/decisions/advance_schedule.ts';
import { readCommand, type Command, type CommandName } from '../../src/journal/commands.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { definitionOf } from '../domain/definition.ts';
import { storeTestCommand } from '../journal/store_test_command.ts';
import { minuteAgo, minutesBefore } from '../setup/minutes.ts';

/** Policies with minimal delays. */
export const quickPolicies = (more: Record<string, string> = {}): Policies =>
  createPolicies(
    readSettings({
      DATABASE_URL: 'unused',
      EXPORTD_JITTER_LONG: '0s',
      EXPORTD_JITTER_SHORT_FRACTION: '0',
      EXPORTD_MANUAL_SIGNALS: 'true',
      ...more,
    }),
    configRules,
  );

/** The definition that tests create exports with. */
export const definition = definitionOf({ name: 'Events every minute', interval: 'every 1 minutes' });

/** Stores commands and takes steps of the schedule, like the HTTP API and the workflow. */
export function createCommander(
  journal: Journal,
  policies: Policies,
  batchExportId: string = randomUUID(),
  teamId = 1,
) {
  const step = (): Promise<ScheduleStep> => advanceSchedule(journal, policies, batchExportId, []);
  const store = (name: CommandName, body?: Record<string, unknown>): Promise<string> =>
    storeTestCommand(journal.pool, batchExportId, name, body, teamId);
  const command = async (
    name: CommandName,
    body: Record<string, unknown> = {},
  ): Promise<{ command: Command; step: ScheduleStep }> => {
    const id = await store(name, body);
    const taken = await step();
    const decided = await readCommand(journal.pool, id);
    if (!decided) throw new Error(`Command ${id} does not exist.`);
    return { command: decided, step: taken };
  };
  /** Minutes that end during the test get no run. */
  const create = (more: object = {}) =>
    command('create', {
      definition: { ...definition, end_at: minuteAgo(0).toISOString(), ...more },
      paused: false,
    });
  return { batchExportId, store, step, command, create };
}

/** ISO 8601 time a number of whole minutes before the tests of the file started. */
export const minutesAgo = (minutes: number): string => minutesBefore(minutes).toISOString();
