import type { Settings } from '../../config/settings.ts';
import { isInvalidRequest } from '../../failures/grpc_errors.ts';
import type { ClientConnection } from '../connections.ts';
import { ensureSearchAttributes } from '../search_attributes.ts';
import type { ExecutionSettings } from '../task_queues.ts';
import { createScheduleClient, type ScheduleSignaller } from './schedule_client.ts';

/**
 * Creates the part of the schedule client that the HTTP API needs. It works before the first worker of a deployment has
 * started: the namespace then lacks exportd's search attributes, and rejects every start.
 */
export function createCommandSignaller(
  connected: ClientConnection,
  settings: ExecutionSettings &
    Pick<Settings, 'EXPORTD_REGISTER_SEARCH_ATTRIBUTES' | 'EXPORTD_COMMAND_TIMEOUT'>,
): ScheduleSignaller {
  const schedules = createScheduleClient(connected.client, settings);
  return {
    signal: async (command) => {
      try {
        await schedules.signal(command);
      } catch (error) {
        if (!isInvalidRequest(error)) throw error;
        const timeout = AbortSignal.timeout(settings.EXPORTD_COMMAND_TIMEOUT);
        await ensureSearchAttributes(connected, settings, timeout);
        await schedules.signal(command);
      }
    },
  };
}
