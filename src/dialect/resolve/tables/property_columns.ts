/** Fields of events that are columns in other installations and properties here. */
export const propertyColumns: ReadonlySet<string> = new Set([
  ...['$session_id', '$window_id'],
  ...['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'],
]);
