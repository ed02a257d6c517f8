/** Columns of events that other installations keep beside the properties that they are taken from. */
export const propertyColumns: ReadonlySet<string> = new Set([
  ...['$session_id', '$window_id'],
  ...['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'],
]);
