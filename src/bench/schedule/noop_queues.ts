/** Separate task queues for no-op workflows and their activities, like those of exportd. */
export const noopQueues = (prefix: string) => ({
  workflows: `${prefix}-workflows`,
  activities: `${prefix}-activities`,
});
