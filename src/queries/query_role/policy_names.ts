/** The policies that exportd creates. It replaces no others. */
export const policyNames = {
  /** Restricts the role of queries to the rows of the transaction's project. */
  restriction: 'exportd_query_project',
  /** Lets the role read what no other policy grants it, within the restriction. */
  reading: 'exportd_query_reading',
  /** Keeps everything as it was for other roles, where exportd has enabled row security. */
  others: 'exportd_other_roles',
} as const;
