import type { Settings } from '../../config/settings.ts';
import { createActivitySlots, type ActivitySlots } from './activity_slots.ts';

/**
 * The activity slots of the export worker. An attempt that waits for an unresponsive server yields its slot to another,
 * so that a bucket that hangs delays no other export. At most EXPORTD_MAX_YIELDED_SLOTS are yielded at a time, since each
 * attempt needs memory.
 */
export type ExportSlots = ActivitySlots;

/** Creates EXPORTD_EXPORT_SLOTS slots. */
export const createExportSlots = (
  settings: Pick<Settings, 'EXPORTD_EXPORT_SLOTS' | 'EXPORTD_MAX_YIELDED_SLOTS'>,
): ExportSlots => createActivitySlots(settings.EXPORTD_EXPORT_SLOTS, settings.EXPORTD_MAX_YIELDED_SLOTS);
