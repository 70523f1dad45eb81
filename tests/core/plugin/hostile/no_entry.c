// Exports something else.
int unrelated;
