/** The days that weeks of a project may start on, in its insights. */
export const weekStartDays = ['sunday', 'monday'] as const;
