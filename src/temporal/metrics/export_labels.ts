import type { RunSpec } from '../../domain/run_state.ts';

/** The labels that name an export. */
export const exportLabels = ['project_id', 'batch_export_id'] as const;

/** Names the export of a run. */
export const exportLabelsOf = ({ team_id, batch_export_id }: RunSpec) => ({
  project_id: String(team_id),
  batch_export_id,
});
